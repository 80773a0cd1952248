"""Decides what becomes of a request about a node. Pure."""

from trainmaster.core.events import Event
from trainmaster.core.facts import DrainRequested, DrainWithdrawn, HealthReported
from trainmaster.core.nodes import Node
from trainmaster.submission.requests import (
    Already,
    Drain,
    Missing,
    NodeRequest,
    Reply,
    ReportHealth,
)


def judged_node(node: Node | None, request: NodeRequest) -> Event | Reply:
    """Say which event a request becomes, or why it becomes none."""
    if node is None or node.registered_at is None:
        return Missing()
    if isinstance(request, ReportHealth):
        return _health(node, request)
    if isinstance(request, Drain):
        if node.draining:
            return Already(message=f"it is {'drained' if node.drained else 'draining'}")
        return DrainRequested(
            by=request.by, origin=request.origin, reason=request.reason
        )
    if not node.draining:
        return Already(message="it is not being drained")
    return DrainWithdrawn(by=request.by, origin=request.origin, reason=request.reason)


def _health(node: Node, request: ReportHealth) -> Event | Reply:
    if node.problems.get(request.check, "") == request.problem:
        return Already(message="it is known")
    return HealthReported(
        check=request.check,
        problem=request.problem,
        evidence=request.evidence,
        by=request.by,
        origin=request.origin,
    )
