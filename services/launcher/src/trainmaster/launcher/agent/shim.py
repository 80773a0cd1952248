"""Owns one rank: starts it, outlives everybody else and writes down how it ended.

Run as `python -I -S shim.py DIR STATUS_FD LOCK_FD`, on the standard library and little
of that, because its start is a part of every start. All it knows is in DIR:

* `request.json` (read)    what to run; written by the process backend
* `started.json` (written) the rank was executed; who it and the shim are
* `failed.json`  (written) the rank was never executed; the step that failed
* `exit.json`    (written) how the rank ended

`started.json` or `failed.json` also goes to STATUS_FD, as one line, so that the
backend need not look for it. LOCK_FD carries the backend's lock on DIR; it is held
until either is written, even if the backend dies.

The shim leads a session of its own, and the rank a process group of its own in it.
The shim hears no signal that can be blocked, adopts what the rank orphans, and ends
when the rank and all of its descendants have ended.
"""

# `typing`, `json`, `signal` and `pathlib` cost 5 to 15 ms each, as much as the rest
# together: this file does without, and takes the half of json that is written in C.
import ctypes
import errno
import os
import sys
import time
from _json import encode_basestring_ascii as quoted
from _json import make_scanner

PR_SET_CHILD_SUBREAPER = 36
CLONE3, CLONE_INTO_CGROUP, SIGCHLD = 435, 1 << 33, 17
SIG_SETMASK, SIG_DFL, SIGNALS = 2, None, range(1, 65)
STDERR = 2
NO_SIGNAL, EVERY_SIGNAL = bytes(128), b"\xff" * 128
RECORD_BYTES, REPORT_BYTES_MAX = 4096, 65536
NEVER_EXECUTED, EXECUTING = 127, b"exec"

libc = ctypes.CDLL(None)
libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
libc.signal.restype = ctypes.c_void_p


class JsonDialect:
    """What the scanner of `json` wants to know; the same as `json.loads`."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


class Request:
    """What `request.json` says."""

    def __init__(self, path: str) -> None:
        document, _ = make_scanner(JsonDialect)(read(path), 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - attributes are all it asks for
        self.argv: list[str] = document["argv"]
        self.env: dict[str, str] = document["env"]
        self.cwd: str = document["cwd"]
        self.log: str = document["log"]
        self.uid: int | None = document["uid"]
        self.gid: int | None = document["gid"]
        self.groups: list[int] | None = document["groups"]
        self.cgroup: str | None = document["cgroup"]


def main(directory: str, status_fd: int, lock_fd: int) -> None:
    """Start the rank of `directory`, say so, and stay until nothing of it is left."""
    libc.sigprocmask(SIG_SETMASK, EVERY_SIGNAL, None)
    os.setsid()
    os.chdir(directory)
    close_all_but(status_fd, lock_fd)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    request = Request("request.json")
    for name in ("started", "exit"):  # a full disk cannot keep these from being said
        fill(f"{name}.json.tmp", " " * RECORD_BYTES)
    rank, failure = start(request)
    outcome = "failed" if failure else "started"
    record = failure or start_record(rank)
    write(f"{outcome}.json", record)
    os.close(lock_fd)
    tell(status_fd, f"{outcome} {record}\n")
    reap(rank, request.cgroup)


# --------------------------------------------------------------------------- start


def start(request: Request) -> tuple[int, str]:
    """Fork and execute the rank; return its pid, and why it was not executed or ""."""
    reader, writer = os.pipe()
    pid = fork_into(request.cgroup)
    if pid == 0:
        become_rank(request, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:  # ends when exec closes the other side
        report = os.fsdecode(file.read(REPORT_BYTES_MAX))
    if report == os.fsdecode(EXECUTING):
        return pid, ""
    os.waitpid(pid, 0)
    _, *failure = report.split("\0")
    code, step, what = failure or ("0", "preparation", "the process died in it")
    return pid, f'{{"errno": {code}, "step": {quoted(step)}, "what": {quoted(what)}}}'


def fork_into(cgroup: str | None) -> int:
    """Fork, right into a cgroup where the kernel can: to join one takes it 10 ms."""
    try:
        fd = os.open(cgroup or "", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return os.fork()  # without one, or the child says what is wrong with it
    # flags, pidfd, child_tid, parent_tid, exit_signal, five for threads, cgroup
    words = (CLONE_INTO_CGROUP, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, fd)
    arguments = (ctypes.c_uint64 * len(words))(*words)
    size = ctypes.c_size_t(ctypes.sizeof(arguments))
    pid: int = ctypes.PyDLL(None).syscall(CLONE3, ctypes.byref(arguments), size)
    os.close(fd)
    return os.fork() if pid < 0 else pid


def become_rank(request: Request, report_fd: int) -> None:
    """Turn this child into the rank, or report what failed; never return.

    Nothing may be imported on the way: the job's user need not be able to read it.
    """
    step, what = "process group", ""
    try:
        os.setpgid(0, 0)
        step, what = "cgroup", request.cgroup or ""
        join(request.cgroup)
        step, what = "user", str(request.uid)
        become_user(request)
        step, what = "output file", request.log
        open_output(request.log)
        step, what = "work directory", request.cwd
        os.chdir(request.cwd)
        step, what = "program", request.argv[0]
        reset_signals()
        os.write(report_fd, EXECUTING)
        execute(request)
    finally:  # still here, so it was not executed, for whatever reason
        code = getattr(sys.exc_info()[1], "errno", None) or errno.EINVAL
        if code == errno.ENOENT and step == "program" and "/" in what:
            step = "interpreter" if os.path.exists(what) else step  # noqa: PTH110 - no pathlib
        os.write(report_fd, os.fsencode(f"\0{code}\0{step}\0{what}"))
        os._exit(NEVER_EXECUTED)


def execute(request: Request) -> None:
    """Execute the program, looked up as `os.execvpe` does, which imports for it."""
    program = request.argv[0]
    failure: OSError = FileNotFoundError(errno.ENOENT, "not found")
    path = "" if "/" in program else request.env.get("PATH", os.defpath)
    for directory in path.split(":"):
        try:
            os.execve(os.path.join(directory, program), request.argv, request.env)  # noqa: PTH118, S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            failure = error
    raise failure


def join(cgroup: str | None) -> None:
    """Enter the rank's own cgroup, if not born in it, while still allowed to."""
    if cgroup and "/".join(cgroup.split("/")[-2:]) not in read("/proc/self/cgroup"):
        fill(f"{cgroup}/cgroup.procs", "0")


def become_user(request: Request) -> None:
    """Drop to the job's user; all that follows happens with its rights only."""
    if request.uid is None or request.gid is None:
        return
    root = os.geteuid() == 0
    if root:
        os.setgroups(request.groups or [])
        os.setresgid(request.gid, request.gid, request.gid)
        os.setresuid(request.uid, request.uid, request.uid)
    if request.uid != os.geteuid() or (root and request.gid != os.getegid()):
        raise PermissionError(errno.EPERM, "no such switch")  # -1 changes nothing


def open_output(path: str) -> None:
    """Append output to a file of the job's user, which no one else may read."""
    os.umask(0o022)
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - no pathlib
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)


def reset_signals() -> None:
    """Undo what this shim, its Python or whoever started it blocks or ignores."""
    for number in SIGNALS:
        libc.signal(number, SIG_DFL)
    libc.sigprocmask(SIG_SETMASK, NO_SIGNAL, None)


# ----------------------------------------------------------------------------- end


def reap(rank: int, cgroup: str | None) -> None:
    """Wait for the rank and for all it leaves behind; write down the rank's end."""
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if pid == rank:
            record = exit_record(pid, status, out_of_memory(cgroup))
            write("exit.json", record, durable=True)


def exit_record(pid: int, status: int, oom: str) -> str:
    """Say how the rank ended; exactly one of code and signal is not null."""
    code = os.waitstatus_to_exitcode(status)
    how = (
        f'"code": {code}, "signal": null'
        if code >= 0
        else (f'"code": null, "signal": {-code}')
    )
    return f'{{"rank_pid": {pid}, {how}, "oom": {oom}, "how_known": "waited", {now()}}}'


def out_of_memory(cgroup: str | None) -> str:
    """Whether the kernel killed for memory in the cgroup; null if not counted."""
    try:
        lines = read(f"{cgroup}/memory.events").splitlines() if cgroup else []
    except OSError:
        return "null"
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return ("false" if counts == ["0"] else "true") if counts else "null"


# ------------------------------------------------------------------------- records


def start_record(rank: int) -> str:
    """Say who the rank and this shim are."""
    boot = quoted(read("/proc/sys/kernel/random/boot_id").strip())
    people = f'"rank": {identity(rank)}, "shim": {identity(os.getpid())}'
    return f'{{{people}, "boot_id": {boot}, {now()}}}'


def identity(pid: int) -> str:
    """Pid and start time; the time is field 22, counted behind the command's `)`."""
    ticks = read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19]
    return f'{{"pid": {pid}, "start_ticks": {ticks}}}'


def now() -> str:
    """Wall-clock time for people, time since boot for comparing."""
    wall = time.time()  # noqa: TID251 - no Clock here
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return f'"at": {wall:.3f}, "at_boot_seconds": {since_boot:.3f}'


def tell(status_fd: int, line: str) -> None:
    """Tell the backend, which may have gone."""
    try:
        os.write(status_fd, line.encode())
    except BrokenPipeError:
        return


def close_all_but(*kept: int) -> None:
    """Keep the three standard files and `kept`, which the rank does not inherit."""
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - no pathlib
        try:
            if fd in kept:
                os.set_inheritable(fd, False)  # noqa: FBT003 - positional only
            elif fd > STDERR:
                os.close(fd)
        except OSError:
            continue  # the one that listed the others


def read(path: str) -> str:
    """Read a small text file."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        return file.read()


def write(path: str, text: str, *, durable: bool = False) -> None:
    """Make a whole file appear at once."""
    fill(f"{path}.tmp", text, durable=durable)
    os.rename(f"{path}.tmp", path)  # noqa: PTH104 - no pathlib


def fill(path: str, text: str, *, durable: bool = False) -> None:
    """Write over the beginning of a file, readable by nobody else."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, text.encode())
    if durable:
        os.fsync(fd)
    os.close(fd)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
