"""What a line of output says about the training, and what it does not say."""

from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.monitor.rules import read_line, to_float

pytestmark = pytest.mark.unit

READ = [
    ("step 10 loss 2.3456 lr 0.00300 5868 tok/s", 10, 2.3456),
    ("iter 10: loss 9.3402, time 251.13ms, mfu 11.02%", 10, 9.3402),
    ("iter 0: loss 10.9886, time 22311.05ms, mfu -100.00%", 0, 10.9886),
    ("step 250: train loss 1.9654, val loss 2.0601", 250, 1.9654),
    ("step 250: val loss 2.0601, train loss 1.9654", 250, 1.9654),
    (
        "[rank0]:[titan] 2026-06-25 13:06:03,755 - root - INFO - step: 440  loss: 5.25",
        440,
        5.25,
    ),
    (
        "\x1b[31mstep: 440  \x1b[32mloss:  \x1b[38;2;180;60;0m5.2553\x1b[0m  tps: 58",
        440,
        5.2553,
    ),
    ("iter 76 step 38: loss 10.8259, iter time: 197.87ms", 38, 10.8259),
    (
        "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, loss: 10.374",
        9,
        10.374,
    ),
    (
        "iteration  122/ 250000 | lr: 9E-06 | lm loss: 2.504220E+00 | loss scale: 1 |",
        122,
        2.50422,
    ),
    ("Epoch [1/5], Step [100/600], Loss: 0.2217", 100, 0.2217),
    ("step=10 loss=1.5", 10, 1.5),
    ('{"step": 10, "loss": 2.5, "rank": 0}', 10, 2.5),
    ("{'step': 7, 'loss': '2.5'}", 7, 2.5),
    ("Step 1,234 | Loss 3.1", 1234, 3.1),
    ("step 12345 loss 1,234.5", 12345, 1234.5),
    ("global_step=794.0, loss=1.63e+6", 794, 1.63e6),
    ("micro_step=3/global_step=12 loss .5", 12, 0.5),
    ("[default0]: step 3 loss 4", 3, 4.0),
    ("3: step 3 loss 4.25", 3, 4.25),
    ("2026-01-01T00:00:00.000Z stdout F step 3 loss 4.25", 3, 4.25),
    ("train/step 5 train_loss 2.5", 5, 2.5),
    ("step 5 - training loss: 2.5 - eval_time 3 s", 5, 2.5),
    ("step 5 | max_grad_norm 1.0 | loss 2.5", 5, 2.5),
    ("[test-run] step 5 loss 2.5", 5, 2.5),
    ("STEP 5 LOSS 2.5", 5, 2.5),
    ("step 5 loss tensor(2.5, device='cuda:0')", 5, 2.5),
    ("step 5 loss -0.25", 5, -0.25),
    ("steps: 5, loss: 2.5.", 5, 2.5),
    ("step #5 loss: 2.5", 5, 2.5),
]

NOT_READ = [
    "",
    "loss 2.5",
    "step 10",
    "Saving checkpoint at step 500",
    "{'loss': 1.2345, 'grad_norm': 0.8123, 'learning_rate': 1.9e-05, 'epoch': 0.04}",
    "{'eval_loss': 1.98, 'eval_runtime': 3.21, 'epoch': 1.0}",
    " 33%|###3      | 3/9 [00:08<00:16,  2.74s/it]",
    "Epoch 10:  93%|###3| 18625/20000 [5:43:21<25:20,  0.90it/s, train_loss=3.400]",
    "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[2e-05]",
    "validate step: 440  loss:  5.2553",
    "step 250: val loss 2.0601",
    "step 250 eval_loss 2.0601",
    "step 250 best_val_loss 2.06",
    "step 250 best loss 2.06",
    "eval step 250 loss 2.06",
    "step 10 loss N/A",
    "step 10 loss scale: 1.0",
    "step 10 loss_scale=65536",
    "step 10 gloss 2.5",
    "step 10 loss 2.5x",
    "step 10 loss of 3 packets",
    "timestep 10 loss 2.5",
    "optimizer_step 10 loss 2.5",
    "step 10.5 loss 2.5",
    "step 99999999999 loss 2.5",
    "step 9999999999 loss 2.5",
    "Watchdog caught collective operation timeout: ran for 600000 milliseconds",
    "slurmstepd: error: *** STEP 12.0 ON node CANCELLED, loss of allocation ***",
    "nano nan_count=0 step 3",
    "step 10 los",
    "p 10 loss 2.3456",
    "10 loss 2.3456",
]

NONSENSE = [
    ("nan", "nan"),
    ("NaN", "nan"),
    ("NAN", "nan"),
    ("-nan", "nan"),
    ("-nan(ind)", "nan"),
    ("nan(0x8000000000000)", "nan"),
    ("1.#QNAN", "nan"),
    ("-1.#IND00", "nan"),
    ("inf", "inf"),
    ("+inf", "inf"),
    ("-inf", "-inf"),
    ("Infinity", "inf"),
    ("-Infinity", "-inf"),
    ("1.#INF", "inf"),
]


@pytest.mark.parametrize(("line", "step", "loss"), READ, ids=lambda v: str(v)[:40])
def test_a_line_of_the_family_is_read(line: str, step: int, loss: float):
    reading = read_line(line)
    assert reading is not None
    assert (reading.step, reading.loss) == (step, pytest.approx(loss))


@pytest.mark.parametrize("line", NOT_READ)
def test_any_other_line_says_nothing(line: str):
    assert read_line(line) is None


@pytest.mark.parametrize(("text", "kind"), NONSENSE)
@pytest.mark.parametrize(
    "line",
    ["step 10 loss {}", "iter 10: loss {}, time 3ms", '{{"step":10,"loss":"{}"}}'],
)
def test_every_spelling_of_no_number_is_known(line: str, text: str, kind: str):
    reading = read_line(line.format(text))
    assert reading is not None
    assert reading.text == text
    assert isnan(reading.loss) if kind == "nan" else reading.loss == float(kind)


def test_a_number_too_large_is_infinite():
    reading = read_line(f"step 1 loss {'9' * 400}")
    assert reading is not None
    assert reading.loss == inf
    assert len(reading.text) <= 32


@given(st.text(max_size=300))
def test_no_line_whatever_breaks_the_reader(line: str):
    reading = read_line(f"step 1 loss {line}") or read_line(line)
    assert reading is None or reading.step >= 0


@given(st.integers(0, 2**31 - 1), st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_prints_is_read_back(step: int, loss: float):
    reading = read_line(f"step {step} loss {loss!r} lr 0.1")
    assert reading is not None
    assert (reading.step, reading.loss) == (step, loss)


def test_a_separator_of_thousands_is_no_decimal_point():
    assert to_float("1,234,567.5") == 1234567.5
