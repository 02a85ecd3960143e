"""A small airline, written from the documented behaviour of some tools of the airline benchmark: tools over a state."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

CERTIFICATE_NUMBERS = (3221322, 3221323, 3221324)
EXTRA_BAG_PRICE = 50
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _evaluate(node: ast.AST) -> float:
    if isinstance(node, ast.Expression):
        return _evaluate(node.body)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("only numbers and + - * /")


def environment(state: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """The tools over a state with `flights`, `reservations` and `users`."""
    reservations, users, flights = state["reservations"], state["users"], state["flights"]

    def get_user_details(user_id: str) -> Any:
        return users.get(user_id, "Error: user not found")

    def get_reservation_details(reservation_id: str) -> Any:
        return reservations.get(reservation_id, "Error: reservation not found")

    def search_direct_flight(origin: str, destination: str, date: str) -> Any:
        found = []
        for flight in flights.values():
            day = flight["dates"].get(date, {})
            if (flight["origin"], flight["destination"], day.get("status")) == (origin, destination, "available"):
                found.append({**{k: v for k, v in flight.items() if k != "dates"}, **day})
        return found

    def cancel_reservation(reservation_id: str) -> Any:
        if reservation_id not in reservations:
            return "Error: reservation not found"
        reservation = reservations[reservation_id]
        history = reservation["payment_history"]
        history += [{"payment_id": p["payment_id"], "amount": -p["amount"]} for p in list(history)]
        reservation["status"] = "cancelled"
        return reservation

    def send_certificate(user_id: str, amount: int) -> Any:
        if user_id not in users:
            return "Error: user not found"
        methods = users[user_id]["payment_methods"]
        name = next(f"certificate_{n}" for n in CERTIFICATE_NUMBERS if f"certificate_{n}" not in methods)
        methods[name] = {"source": "certificate", "amount": amount, "id": name}
        return f"Certificate {name} added to user {user_id} with amount {amount}."

    def update_reservation_baggages(
        reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Any:
        if reservation_id not in reservations:
            return "Error: reservation not found"
        reservation = reservations[reservation_id]
        price = EXTRA_BAG_PRICE * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        method = users[reservation["user_id"]]["payment_methods"].get(payment_id)
        if method is None:
            return "Error: payment method not found"
        if method["source"] == "certificate":
            return "Error: certificate cannot be used to update reservation"
        if method["source"] == "gift_card" and method["amount"] < price:
            return "Error: gift card balance is not enough"
        reservation["total_baggages"] = total_baggages
        reservation["nonfree_baggages"] = nonfree_baggages
        if price:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": price})
            if method["source"] == "gift_card":
                method["amount"] -= price
        return reservation

    return {
        "get_user_details": get_user_details,
        "get_reservation_details": get_reservation_details,
        "search_direct_flight": search_direct_flight,
        "cancel_reservation": cancel_reservation,
        "send_certificate": send_certificate,
        "update_reservation_baggages": update_reservation_baggages,
        "calculate": lambda expression: str(round(float(_evaluate(ast.parse(expression, mode="eval"))), 2)),
        "think": lambda thought: "",
        "transfer_to_human_agents": lambda summary: "Transfer successful",
    }
