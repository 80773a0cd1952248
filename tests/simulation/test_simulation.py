"""The rules of a job's life hold in any interleaving of services, nodes and accidents.

A failing seed is printed; play it alone with `make sim SEED=20`.
"""

import os

import pytest
from tests.simulation.verdicts import succeeded, unproven
from tests.simulation.world import World

from trainmaster.testkit.rules import check_history, check_settled

SEEDS_TEST, SEEDS_SOAK = 200, 3_000
_TOLD = os.environ.get("TM_SIM_SEED")


def _seeds(first: int, last: int) -> list[int]:
    return [int(_TOLD)] if _TOLD else list(range(first, last))


async def _play(seed: int) -> World:
    world = World(seed=seed)
    await world.play()
    entries = world.entries()
    sightings = sorted(s for agent in world.agents for s in agent.sightings)
    found = check_history(entries, sightings)
    found += check_settled(entries, sightings)
    found += unproven(entries)
    assert not found, f"seed {seed}: " + "\n".join(found)
    return world


@pytest.mark.simulation
@pytest.mark.parametrize("seed", _seeds(0, SEEDS_TEST))
async def test_the_rules_hold_in_any_interleaving(seed: int):
    await _play(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", _seeds(SEEDS_TEST, SEEDS_SOAK))
async def test_the_rules_hold_in_thousands_of_interleavings(seed: int):
    await _play(seed)


@pytest.mark.simulation
async def test_the_simulation_meets_what_it_is_for():
    """A storm in which nothing happens would prove nothing."""
    worlds = [await _play(seed) for seed in range(60)]
    kinds = {e.event.kind for world in worlds for e in world.entries()}
    assert {"requeued", "attempt_lost", "stop_requested", "cancelled"} <= kinds
    assert {"checkpoint_chosen", "failed", "held", "released"} <= kinds
    assert sum(s.crashes for world in worlds for s in world.services) > 20
    assert sum(succeeded(world.entries()) for world in worlds) > 20
