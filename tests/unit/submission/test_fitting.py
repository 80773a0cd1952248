"""What never fits is refused at submission, in the words of the file."""

import pytest
from tests.unit.submission.world import ADA, FakeKeys, World, a_desk

from trainmaster.core.errors import SpecRejectedError
from trainmaster.core.facts import Capacity, NodeRegistered
from trainmaster.core.ids import NodeKey
from trainmaster.jobfile.reading import Source
from trainmaster.submission.desk import Desk

pytestmark = pytest.mark.unit

EIGHT = NodeRegistered(capacity=Capacity(accelerators=8, cpus=64, memory_bytes=2**40))


def with_nodes(*pools: str) -> World:
    world = World()
    for index, pool in enumerate(pools):
        world.store(NodeKey(pool, f"n{index}"), EIGHT)
    return world


async def refusal(desk: Desk, text: str) -> str:
    source = Source(text=text, name="train.yaml", directory="/there")
    with pytest.raises(SpecRejectedError) as caught:
        await desk.submit(source, by=ADA, once=None)
    return str(caught.value)


async def test_more_accelerators_than_any_node_has_are_refused_with_what_would_fit():
    async with with_nodes("local", "local").running() as world:
        text = "name: a\ncommand: b\naccelerators_per_node: 16\n"
        said = await refusal(a_desk(world, FakeKeys()), text)
    assert said.splitlines()[0] == (
        "train.yaml:3:1 `accelerators_per_node: 16` never fits one node (largest: 8). "
        "Did you mean `nodes: 2` with `accelerators_per_node: 8`?"
    )
    assert world.submissions() == []


async def test_a_dialect_is_refused_in_its_own_words():
    async with with_nodes("local").running() as world:
        text = "job:\n  name: a\n  command: b\n  resources: {memory: 2Ti}\n"
        said = await refusal(a_desk(world, FakeKeys()), text)
    assert said.startswith(
        "train.yaml:4:15 `job.resources.memory: 2Ti` never fits one node "
        "(largest: 1024Gi)."
    )


async def test_nodes_of_other_pools_and_nodes_to_come_refuse_nothing():
    async with with_nodes("other").running() as world:
        text = "name: a\ncommand: b\naccelerators_per_node: 16\n"
        source = Source(text=text, directory="/there")
        await a_desk(world, FakeKeys()).submit(source, by=ADA, once=None)
    assert len(world.submissions()) == 1
