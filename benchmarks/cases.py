"""The subcommands: their arguments, and the cases that they measure.

Nothing here imports Keras: each case runs in a process of its own, with the
backend of that case.
"""

import itertools

BACKENDS = ("jax", "tensorflow", "torch")
DTYPES = ("float32", "mixed_bfloat16")
RATIO = 512.0  # Trained steps per agent step, of the recipe "paper".
# What `update --sweep` puts in the place of the given values, one at a time.
SWEEP = {
    "batch_size": (4, 8, 32),
    "batch_length": (16, 32, 128),
    "imag_length": (5, 30),
}


def add_arguments(commands):
    """Adds the subcommands to what `ArgumentParser.add_subparsers` returns."""
    _add_update(_agent(commands, "update", "time and memory of updates"))
    _add_fit(_agent(commands, "fit", "what `fit` adds to the compiled step"))
    act = _agent(commands, "act", "choosing actions")
    act.add_argument("--envs", type=int, nargs="+", default=[1, 16, 128])
    act.add_argument("--calls", type=int, default=200)
    export = _agent(commands, "export", "size and speed of exported agents")
    export.add_argument("--calls", type=int, default=200)
    _add_replay(_command(commands, "replay", "add, sample, write back, memory"))
    _add_env(_command(commands, "env", "steps of environments"))
    long = _agent(commands, "long", "memory and time over many updates")
    _lengths(long)
    _collecting(long)
    long.add_argument("--updates", type=int, default=20_000)
    long.add_argument("--every", type=int, default=100, help="per line")
    _add_soak(_command(commands, "soak", "kills a run and resumes it"))


def _add_update(update):
    _lengths(update)
    update.add_argument("--updates", type=int, default=10)
    update.add_argument(
        "--breakdown",
        action="store_true",
        help="also time the parts of an update and count its kernels",
    )
    update.add_argument(
        "--sweep",
        action="store_true",
        help="also other batch sizes, batch lengths and imagined lengths",
    )
    update.add_argument(
        "--warm-cache",
        action="store_true",
        help="JAX: also the first update with a warm compilation cache",
    )


def _add_fit(fit):
    _lengths(fit)
    _collecting(fit)
    fit.add_argument("--updates", type=int, default=20, help="of a block")
    fit.add_argument("--blocks", type=int, default=5)


def _add_replay(replay):
    replay.add_argument("--size", nargs="+", default=["12m"])
    replay.add_argument(
        "--dtype", nargs="+", default=["float32"], help="of the stored deter"
    )
    replay.add_argument("--envs", type=int, default=16)
    replay.add_argument(
        "--steps", type=int, nargs="+", default=[10_000, 1_000_000]
    )
    replay.add_argument("--calls", type=int, default=200)


def _add_env(env):
    env.add_argument(
        "--env",
        nargs="+",
        default=["gym:Pendulum-v1", "dmc:cartpole_balance", "dmc:walker_walk"],
    )
    env.add_argument("--mode", nargs="+", default=["sync", "process"])
    env.add_argument("--envs", type=int, default=16)
    env.add_argument("--steps", type=int, default=1000, help="of each")


def _add_soak(soak):
    soak.add_argument("--backend", nargs="+", default=["jax"], choices=BACKENDS)
    soak.add_argument("--minutes", type=float, default=60.0)
    soak.add_argument("--envs", type=int, default=3)
    soak.add_argument(
        "--capacity", type=int, default=1500, help="of the replay"
    )
    soak.add_argument(
        "--every", type=int, default=40, help="updates of a checkpoint"
    )
    soak.add_argument("--seed", type=int, default=0)


def _command(commands, name, description):
    command = commands.add_parser(name, help=description)
    command.add_argument(
        "--out", help="where to write; by default benchmarks/results/<name>"
    )
    return command


def _agent(commands, name, description):
    command = _command(commands, name, description)
    command.add_argument(
        "--backend", nargs="+", choices=BACKENDS, default=["jax"]
    )
    command.add_argument("--size", nargs="+", default=["1m"])
    command.add_argument(
        "--dtype", nargs="+", choices=DTYPES, default=["float32"]
    )
    return command


def _lengths(command):
    command.add_argument("--batch-size", type=int, default=16)
    command.add_argument("--batch-length", type=int, default=64)
    command.add_argument("--imag-length", type=int, default=15)


def _collecting(command):
    command.add_argument("--envs", type=int, default=16)
    command.add_argument("--ratio", type=float, default=RATIO)


def expand(arguments):
    """Returns the cases of a subcommand.

    Args:
        arguments: dict of what the parser returned.

    Returns:
        List of dicts, what `measure` of the subcommand's module takes.
    """
    given = dict(arguments)
    command, out = given.pop("command"), given.pop("out")
    given.pop("sweep", None)
    if command == "long":
        given["csv"] = f"{out}.csv"
    names = [
        name
        for name in ("backend", "size", "dtype", "env", "mode")
        if name in given
    ]
    values = itertools.product(*(given[name] for name in names))
    cases = [{**given, **dict(zip(names, v, strict=True))} for v in values]
    cases = [case for each in cases for case in _swept(each, arguments)]
    if command == "long" and len(cases) > 1:
        raise ValueError(
            "`long` runs for hours and measures one case at a time. Received: "
            f"{len(cases)} cases. Give one backend, size and dtype."
        )
    return [_with_config(case) for case in cases]


def _swept(case, arguments):
    """Returns the case and, for a sweep, those with one field replaced."""
    others = SWEEP if arguments.get("sweep") else {}
    return [case] + [
        {**case, name: value}
        for name, values in others.items()
        for value in values
        if value != case[name]
    ]


def _with_config(case):
    fields = [name for name in SWEEP if name in case]
    config = {name: case.pop(name) for name in fields}
    return {**case, "config": config} if fields else case
