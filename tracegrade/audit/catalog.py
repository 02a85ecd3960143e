"""Every rule of the audit, in the order of reports: one module each in `tracegrade.audit.rules`."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tracegrade.audit.base import Rule

FAMILIES = ("gradeability", "regression", "structure", "conventions", "privacy")
_MODULES = """
no_telemetry arguments_not_recorded results_not_recorded calls_not_recorded messages_not_recorded
model_calls_not_recorded usage_missing rule_undecidable call_ids_missing conversation_id_missing aggregate_usage
evidence_vanished attribute_vanished operation_vanished coverage_fell decidability_fell calls_lost type_changed
values_cut orphans_rose unfinished_rose dropped_rose ratchet_slipped attribute_renamed operation_renamed
scope_renamed service_renamed operation_fell attribute_new operation_new version_changed volume_changed orphan_spans
unfinished_span negative_duration dropped_data truncated_value broken_json id_reuse unreadable_data several_roots
child_outside_parent clock_skew duplicate_spans link_to_nowhere call_without_span span_without_request sampled
missing_required renamed_attribute wrong_type deprecated_attribute missing_recommended unknown_value replaced_event
span_kind span_name unknown_attribute content_present credential personal_data costly_attribute
"""


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule."""
    return tuple(import_module(f"tracegrade.audit.rules.{name}").RULE for name in _MODULES.split())
