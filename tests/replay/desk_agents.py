"""Two versions of a small agent, an agent that asks for what nobody recorded, and a broken one."""

from __future__ import annotations

import os
import threading

from tracegrade.replay.session import Session


def careful(session: Session) -> None:
    """Looks the order up, asks, and cancels only when told to."""
    for number, text in enumerate(session.turns()):
        if number == 0:
            session.call("verify_identity", email="user@example.com")
            order = session.call("get_order", order_id="W1")
            session.say(f"The order costs {order['total']}. Shall I cancel it?")
        elif "yes" in text.lower():
            session.call("cancel_order", order_id="W1")
            session.say("It is cancelled.")


def hasty(session: Session) -> None:
    """The same without the question."""
    for number, _ in enumerate(session.turns()):
        if number == 0:
            session.call("verify_identity", email="user@example.com")
            session.call("get_order", order_id="W1")
            session.call("cancel_order", order_id="W1")
            session.say("It is cancelled.")
        else:
            session.say("You are welcome.")


def curious(session: Session) -> None:
    """Asks for another order, and carries on when there is none."""
    for _ in session.turns():
        try:
            session.call("get_order", order_id="W2")
        except Exception:
            session.say("No idea.")
        break


def patient(session: Session) -> None:
    """Tries twice."""
    for number, _ in enumerate(session.turns()):
        if number == 0:
            session.call("verify_identity", email="user@example.com")
            for _attempt in range(2):
                try:
                    order = session.tools["get_order"](order_id="W1")
                    break
                except Exception:
                    order = {}
            session.say(str(order.get("total")))


def broken(session: Session) -> None:
    """Raises."""
    raise RuntimeError("the agent is broken")


def crashing(session: Session) -> None:
    """Takes its process down."""
    os._exit(3)


def hanging(session: Session) -> None:
    """Never ends."""
    threading.Event().wait()


def own_tracer(session: Session) -> None:
    """Writes its own spans with the global tracer, as an instrumented agent does."""
    from opentelemetry import trace

    tracer = trace.get_tracer("desk")
    with tracer.start_as_current_span("invoke_agent desk") as root:
        root.set_attribute("gen_ai.operation.name", "invoke_agent")
        for number, _ in enumerate(session.turns()):
            if number == 0:
                with tracer.start_as_current_span("execute_tool get_order") as span:
                    span.set_attribute("gen_ai.operation.name", "execute_tool")
                    span.set_attribute("gen_ai.tool.name", "get_order")
                    span.set_attribute("gen_ai.tool.call.arguments", '{"order_id": "W1"}')
                    session.call("get_order", order_id="W1")


NOT_AN_AGENT = 7
