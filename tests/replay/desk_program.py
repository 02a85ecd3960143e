"""An agent as a program: asks the endpoint for a model, runs the tools that it asks for, and exports its spans."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def main() -> None:
    told = json.load(sys.stdin)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("desk.program")
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be careful."}]
    with tracer.start_as_current_span("invoke_agent desk", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for text in told["turns"]:
            messages.append({"role": "user", "content": text})
            while True:
                completion = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": messages})
                message = completion["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    name, arguments = call["function"]["name"], call["function"]["arguments"]
                    attributes = {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": name,
                        "gen_ai.tool.call.id": call["id"],
                        "gen_ai.tool.call.arguments": arguments,
                    }
                    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
                        result = post(f"{os.environ['TRACEGRADE_TOOLS_URL']}/{name}", json.loads(arguments))
                        span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    provider.shutdown()


if __name__ == "__main__":
    main()
