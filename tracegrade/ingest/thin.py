"""OTLP messages in which text and attributes stay bytes.

The official descriptors, with every `string`, KeyValue, AnyValue and Status field declared as `bytes`: the same wire
format, parsed by the same library, but a broken text or a deeply nested value then costs only itself, and attributes
that repeat are decoded once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

_OPAQUE = (
    ".opentelemetry.proto.common.v1.KeyValue",
    ".opentelemetry.proto.common.v1.AnyValue",
    ".opentelemetry.proto.trace.v1.Status",
)


@cache
def message(name: str) -> Any:
    """The class of a message, such as `trace.v1.TracesData`."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"tracegrade.thin.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, logs_pb2):
        proto = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(proto)
        proto.name = f"thin/{proto.name}"
        proto.package = proto.package.replace("opentelemetry.proto", "tracegrade.thin")
        proto.ClearField("options")
        proto.dependency[:] = [f"thin/{d}" for d in proto.dependency]
        for item in proto.message_type:
            _thin(item)
        pool.AddSerializedFile(proto.SerializeToString())
    return pool


def _thin(item: descriptor_pb2.DescriptorProto) -> None:
    for field in item.field:
        if field.type == field.TYPE_STRING or field.type_name in _OPAQUE:
            field.type = field.TYPE_BYTES
            field.ClearField("type_name")
        elif field.type_name:
            field.type_name = field.type_name.replace(".opentelemetry.proto.", ".tracegrade.thin.")
    for nested in item.nested_type:
        _thin(nested)
