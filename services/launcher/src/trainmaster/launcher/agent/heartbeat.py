"""Says every second that this node's agent lives, and all that the node has."""

from collections.abc import Callable

from trainmaster.core import subjects
from trainmaster.core.messages import NodeHeartbeat
from trainmaster.launcher.agent.node import Node
from trainmaster.launcher.agent.settings import HEARTBEAT_SECONDS
from trainmaster.runtime.clock import pause


async def beat(node: Node, facts: dict[str, str], members: Callable[[], int]) -> None:
    """Beat until cancelled; late beats would be lies, so none is kept back."""
    subject = subjects.heartbeat(node.key)
    while True:
        if node.bus.connected:
            heartbeat = NodeHeartbeat(
                capacity=node.capacity,
                facts=facts,
                boot_id=node.boot_id,
                address=node.address,
                members=members(),
                interval_seconds=HEARTBEAT_SECONDS,
            )
            await node.bus.client.publish(subject, heartbeat.to_json())
        await pause(HEARTBEAT_SECONDS)
