"""Results: where and on what they were measured, tables and files."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess

ROOT = pathlib.Path(__file__).parents[1]
_PACKAGES = ("keras", "jax", "tensorflow", "tensorflow-cpu", "torch", "numpy")


def circumstances():
    """Returns the commit, the time, the hardware and the versions."""
    return {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M"),
        "hardware": hardware(),
        "python": platform.python_version(),
        "packages": _versions(),
    }


def commit():
    """Returns the short hash of the commit, marked when files differ."""
    try:
        short = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{short} and changes" if changed else short


def _git(*arguments):
    return subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def hardware():
    """Returns the processor, its cores, the memory and the load before."""
    found = {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }
    lines = pathlib.Path("/proc/cpuinfo")
    if lines.exists():
        names = [x for x in lines.read_text().splitlines() if "model name" in x]
        found["processor"] = names[0].split(": ")[1] if names else "unknown"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        found["memory_gb"] = round(pages * page / 2**30, 1)
    if hasattr(os, "getloadavg"):
        # Others' work makes results slow: the reader shall see it.
        found["load_before"] = round(os.getloadavg()[0], 2)
    return found


def _versions():
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def table(rows, columns):
    """Returns a Markdown table, without the columns that no row has.

    Args:
        rows: list of dicts.
        columns: dict from the rows' keys to headings; "" for the key.
    """
    shown = [
        key for key in columns if any(row.get(key) is not None for row in rows)
    ]
    cells = [[columns[key] or key for key in shown]]
    cells += [[_format(row.get(key)) for key in shown] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        " | ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        )
        for line in cells
    ]
    lines.insert(1, " | ".join("-" * max(3, width) for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _format(value):
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"


def write(out, command, about, rows, columns):
    """Writes `out`.json, everything, and `out`.md, the table.

    Args:
        out: path without an ending.
        command: list of str, the arguments.
        about: what `circumstances` returned.
        rows: list of dicts.
        columns: as for `table`.
    """
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    line = f"python -m benchmarks {' '.join(command)}"
    content = {"command": line, **about, "rows": rows}
    pathlib.Path(f"{out}.json").write_text(json.dumps(content, indent=1) + "\n")
    hardware = ", ".join(f"{k} {v}" for k, v in about["hardware"].items())
    packages = ", ".join(f"{k} {v}" for k, v in about["packages"].items())
    text = (
        f"`{line}`\n\nCommit {about['commit']}, {about['date']} UTC; "
        f"{hardware}; Python {about['python']}, {packages}.\n\n"
        f"{table(rows, columns)}\n"
    )
    pathlib.Path(f"{out}.md").write_text(text)
