"""What a rank finds in its environment, name by name."""

from dataclasses import replace

import pytest

from trainmaster.launcher.agent.environment import (
    BASE_PATH,
    Directories,
    EnvironmentRequest,
    LaunchStyle,
    ReservedVariableError,
    log_file,
    rank_environment,
)

pytestmark = pytest.mark.unit

REQUEST = EnvironmentRequest(
    job_id="01J5",
    job_name="lm",
    team="vision",
    attempt=2,
    spec_digest="abc",
    launch=LaunchStyle.PER_RANK,
    master_address="10.0.0.1",
    master_port=29511,
    node_addresses=("10.0.0.1", "10.0.0.2"),
    node_rank=1,
    rank=3,
    local_rank=1,
    processes_per_node=2,
    devices=("4", "5"),
    directories=Directories(
        output="/out",
        checkpoint="/ckpt",
        data="/data",
        scratch="/scratch",
        home="/home/ann",
    ),
    user_name="ann",
    resume_from="/ckpt/step-500",
    resume_step=500,
    deadline_unix_seconds=1790000000,
    network_interface="ib0",
    job_variables={"SEED": "1"},
)
NUMBERS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}
TORCHRUN = {
    "PET_NNODES": "2",
    "PET_NODE_RANK": "1",
    "PET_NPROC_PER_NODE": "2",
    "PET_MASTER_ADDR": "10.0.0.1",
    "PET_MASTER_PORT": "29511",
}


def test_a_rank_that_we_start_finds_exactly_this():
    assert rank_environment(REQUEST) == {
        "PATH": BASE_PATH,
        "HOME": "/home/ann",
        "LANG": "C.UTF-8",
        "USER": "ann",
        "LOGNAME": "ann",
        "SEED": "1",
        "WANDB_RUN_ID": "01J5",
        "WANDB_RESUME": "allow",
        "NCCL_SOCKET_IFNAME": "ib0",
        "GLOO_SOCKET_IFNAME": "ib0",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29511",
        "NNODES": "2",
        "NODE_RANK": "1",
        "RANK": "3",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "4",
        "LOCAL_WORLD_SIZE": "2",
        "CUDA_VISIBLE_DEVICES": "4,5",
        "PYTHONUNBUFFERED": "1",
        "TM_JOB_ID": "01J5",
        "TM_JOB_NAME": "lm",
        "TM_TEAM": "vision",
        "TM_ATTEMPT": "2",
        "TM_NODE_IPS": "10.0.0.1\n10.0.0.2",
        "TM_GPUS_PER_NODE": "2",
        "TM_CHECKPOINT_DIR": "/ckpt",
        "TM_RESUME_FROM": "/ckpt/step-500",
        "TM_RESUME_STEP": "500",
        "TM_OUTPUT_DIR": "/out",
        "TM_DATA_DIR": "/data",
        "TM_SCRATCH_DIR": "/scratch",
        "TM_METRICS_FILE": "/out/logs/attempt-2/rank-3.metrics.jsonl",
        "TM_DEADLINE": "1790000000",
        "TM_SPEC_DIGEST": "abc",
        "TORCHELASTIC_ERROR_FILE": "/out/logs/attempt-2/rank-3.error.json",
    }


@pytest.mark.parametrize("launch", [LaunchStyle.ONCE_PER_NODE, LaunchStyle.TORCHRUN])
def test_ranks_are_numbered_only_where_we_start_each(launch: LaunchStyle):
    assert not NUMBERS & set(rank_environment(replace(REQUEST, launch=launch)))


@pytest.mark.parametrize("launch", list(LaunchStyle))
def test_options_of_torchrun_are_for_torchrun_only(launch: LaunchStyle):
    environment = rank_environment(replace(REQUEST, launch=launch))
    options = {n: v for n, v in environment.items() if n.startswith("PET_")}
    assert options == (TORCHRUN if launch is LaunchStyle.TORCHRUN else {})


def test_a_first_attempt_resumes_from_nothing_and_says_so():
    fresh = replace(REQUEST, resume_from="", resume_step=0, deadline_unix_seconds=None)
    environment = rank_environment(fresh)
    names = ("TM_RESUME_FROM", "TM_RESUME_STEP", "TM_DEADLINE")
    assert [environment[name] for name in names] == ["", "0", ""]


def test_without_accelerators_no_device_is_seen():
    environment = rank_environment(replace(REQUEST, devices=()))
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert environment["TM_GPUS_PER_NODE"] == "0"


def test_a_pool_names_its_own_device_variable():
    pool = replace(REQUEST, device_variable="ROCR_VISIBLE_DEVICES")
    environment = rank_environment(pool)
    assert environment["ROCR_VISIBLE_DEVICES"] == "4,5"
    assert "CUDA_VISIBLE_DEVICES" not in environment


def test_defaults_give_way_to_the_job():
    given = {"WANDB_RUN_ID": "mine", "PATH": "/opt/bin", "NCCL_SOCKET_IFNAME": "eth1"}
    environment = rank_environment(replace(REQUEST, job_variables=given))
    assert {name: environment[name] for name in given} == given
    assert environment["GLOO_SOCKET_IFNAME"] == "ib0"


def test_without_an_interface_the_libraries_choose():
    environment = rank_environment(replace(REQUEST, network_interface=""))
    assert not {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"} & set(environment)


def test_a_reserved_name_with_another_value_is_refused_by_name():
    given = {"MASTER_PORT": "1234"}
    with pytest.raises(ReservedVariableError, match="MASTER_PORT='1234' is reserved"):
        rank_environment(replace(REQUEST, job_variables=given))


def test_a_reserved_name_with_our_value_is_no_fault():
    same = replace(REQUEST, job_variables={"PYTHONUNBUFFERED": "1"})
    assert rank_environment(same)["PYTHONUNBUFFERED"] == "1"


def test_a_rank_number_is_the_jobs_own_where_we_do_not_start_it():
    own = replace(
        REQUEST, launch=LaunchStyle.ONCE_PER_NODE, job_variables={"RANK": "9"}
    )
    assert rank_environment(own)["RANK"] == "9"


def test_every_attempt_and_rank_has_a_log_of_its_own():
    assert log_file("/out", attempt=2, rank=3) == "/out/logs/attempt-2/rank-3.log"
