"""Offline grader for AI agents that works from the OpenTelemetry traces a team already has."""

__version__ = "0.1.0"
