"""What can never fit, and what would."""

import pytest

from trainmaster.core.spec import JobSpec
from trainmaster.jobfile.fits import Shape, never_fits

pytestmark = pytest.mark.unit

EIGHT = Shape(accelerators=8, cpus=64, memory_bytes=2**40)
FOUR = Shape(accelerators=4, cpus=32, memory_bytes=2**38)


def said_of(*shapes: Shape, complete: bool = True, **asked: int) -> str:
    spec = JobSpec.model_validate({"pool": "gpu", **asked})
    faults = never_fits(spec, shapes, complete=complete)
    return "\n".join(fault.message for fault in faults)


def test_more_nodes_are_offered_for_too_many_accelerators():
    assert said_of(EIGHT, EIGHT, accelerators_per_node=16) == (
        "`accelerators_per_node: 16` never fits one node (largest: 8). Did you mean "
        "`nodes: 2` with `accelerators_per_node: 8`?"
    )
    assert said_of(EIGHT, accelerators_per_node=16) == (
        "`accelerators_per_node: 16` never fits one node (largest: 8)."
    )


def test_every_demand_that_is_too_large_is_told():
    assert said_of(FOUR, accelerators_per_node=5, memory_bytes_per_node=2**39) == (
        "`accelerators_per_node: 5` never fits one node (largest: 4).\n"
        "`memory_per_node: 512Gi` never fits one node (largest: 256Gi)."
    )
    assert said_of(FOUR, cpus_per_node=33) == (
        "`cpus_per_node: 33` never fits one node (largest: 32)."
    )


def test_demands_that_fit_different_nodes_only_are_told():
    large = Shape(cpus=64, memory_bytes=2**41)
    assert said_of(
        EIGHT, large, accelerators_per_node=8, memory_bytes_per_node=2**41
    ) == (
        "no node has 8 accelerators together with `memory_per_node: 2Ti` (the one with "
        "most accelerators has 1024Gi)"
    )


def test_the_number_of_nodes_is_judged_where_no_more_can_come():
    assert said_of(EIGHT, FOUR, nodes=2, accelerators_per_node=8) == (
        "`nodes: 2` never fits pool `gpu`: it has 1 nodes that are large enough. Did "
        "you mean `nodes: 1`?"
    )
    assert not said_of(EIGHT, FOUR, complete=False, nodes=9, accelerators_per_node=8)


def test_a_pool_without_nodes_refuses_nothing():
    assert not said_of(accelerators_per_node=16)


def test_what_fits_is_not_spoken_of():
    assert not said_of(EIGHT, FOUR, nodes=2, accelerators_per_node=4)
