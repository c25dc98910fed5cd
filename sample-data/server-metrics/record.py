#!/usr/bin/env python3
"""Samples this machine's /proc into a CSV file that the job server-metrics reads. Linux only; needs no other package.

    record.py --output FILE             a row every 5 seconds until Ctrl-C
    record.py --output FILE --seconds 120 --every 2 --host server1.bbb.com
    record.py --check                   compare the sample beside this file with datapackage.json

Every machine gives the same columns: those of a core that the machine does not have stay empty.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import re
import socket
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROC = pathlib.Path("/proc")

# Columns of cores 1 to CORES; further cores are only in the sums. The job file declares these columns.
CORES = 2
SHARES = ["USR", "NICE", "SYS", "IDLE", "IOWAIT", "IRQ", "SOFTIRQ", "STEAL"]
MEMORY = {
    "TOTAL": "MemTotal", "FREE": "MemFree", "AVAILABLE": "MemAvailable", "BUFFERS": "Buffers", "CACHED": "Cached",
    "ACTIVE": "Active", "INACTIVE": "Inactive", "DIRTY": "Dirty", "WRITEBACK": "Writeback", "ANON": "AnonPages",
    "MAPPED": "Mapped", "SHMEM": "Shmem", "SLAB": "Slab", "KERNEL_STACK": "KernelStack", "PAGE_TABLES": "PageTables",
    "SWAP_TOTAL": "SwapTotal", "SWAP_FREE": "SwapFree", "COMMITTED": "Committed_AS",
}  # fmt: skip
PAGING = ["PGFAULT", "PGMAJFAULT", "PGPGIN", "PGPGOUT", "PSWPIN", "PSWPOUT"]
# The fields of /proc/diskstats after the name of the disk.
DISK = ["READS", "READS_MERGED", "BLK_READ", "READ_MS", "WRITES", "WRITES_MERGED", "BLK_WRTN", "WRITE_MS", "ACTIVE", "BUSY_MS"]
# The fields of /proc/net/dev, four of the eight of each direction.
NETWORK = ["BYTES", "PACKETS", "ERRS", "DROP"]
COLUMNS = [
    "host",
    "ts",
    *(f"CPU/CPU_{share}" for share in SHARES),
    *(f"CPU/CPU{core}_{share}" for core in range(1, CORES + 1) for share in SHARES),
    *(f"LOAD/{name}" for name in ["1MIN", "5MIN", "15MIN", "RUNNING", "PROCESSES"]),
    *(f"SYS/{name}" for name in ["INTR", "CTXT", "FORKS", "BLOCKED", "FILES"]),
    *(f"MEM/{name}" for name in MEMORY),
    *(f"VM/{name}" for name in PAGING),
    *(f"IO/{name}" for name in DISK),
    *(f"NET/{way}_{name}" for way in ["RX", "TX"] for name in NETWORK),
]


def lines(path):
    return [line.split() for line in (PROC / path).read_text().splitlines()]


def processor_times():
    """By core ("cpu" is their sum): the jiffies spent in each of SHARES."""
    return {words[0]: [int(word) for word in words[1:9]] for words in lines("stat") if words[0].startswith("cpu")}


def shares(before, after):
    """What part of the time since `before` went to each of SHARES, in hundredths."""
    spent = [max(0, new - old) for old, new in zip(before, after)]
    total = sum(spent) or 1
    return [f"{part / total:.2f}" for part in spent]


def disks():
    """Sums over whole disks: no partitions, loops, RAM disks or mapped devices."""
    whole = re.compile(r"(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)$")
    rows = [[int(word) for word in words[3:13]] for words in lines("diskstats") if whole.match(words[2])]
    return [sum(column) for column in zip(*rows)] or [0] * len(DISK)


def network():
    """Sums over all interfaces but the loopback: received, then sent."""
    total = [0] * 2 * len(NETWORK)
    for line in (PROC / "net/dev").read_text().splitlines()[2:]:
        name, counters = line.split(":")
        numbers = [int(word) for word in counters.split()]
        if name.strip() != "lo":
            total = [one + other for one, other in zip(total, numbers[0:4] + numbers[8:12])]
    return total


def sample(host, before):
    """One row, and the processor times that the next row is measured from."""
    now = datetime.datetime.now(datetime.timezone.utc)
    times = processor_times()
    row = [host, now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z"]
    for core in ["cpu", *(f"cpu{core}" for core in range(CORES))]:
        known = core in before and core in times
        row += shares(before[core], times[core]) if known else [""] * len(SHARES)
    load = lines("loadavg")[0]
    row += [*load[:3], *load[3].split("/")]
    stat = {words[0]: words[1] for words in lines("stat") if len(words) > 1}
    row += [stat["intr"], stat["ctxt"], stat["processes"], stat["procs_blocked"], lines("sys/fs/file-nr")[0][0]]
    memory = {words[0].rstrip(":"): words[1] for words in lines("meminfo")}
    row += [memory.get(name, "") for name in MEMORY.values()]
    paging = {words[0].upper(): words[1] for words in lines("vmstat")}
    row += [paging.get(name, "") for name in PAGING]
    row += [*disks(), *network()]
    return row, times


def record(arguments):
    every = arguments.every
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    rows, times, due = 0, processor_times(), time.monotonic()
    end = None if arguments.seconds is None else due + arguments.seconds
    with open(arguments.output, "x") as file:
        file.write(",".join(COLUMNS) + "\n")
        try:
            while end is None or due + every <= end:
                due += every
                time.sleep(max(0, due - time.monotonic()))
                row, times = sample(arguments.host, times)
                file.write(",".join(map(str, row)) + "\n")
                file.flush()
                rows += 1
        except KeyboardInterrupt:
            pass
    print(f"{rows} rows of {len(COLUMNS)} columns in {arguments.output}")


def check():
    wrong = 0
    resources = json.loads((HERE / "datapackage.json").read_text())["resources"]
    for resource in resources:
        data = (HERE / resource["path"]).read_bytes()
        if (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") != (resource["bytes"], resource["hash"]):
            print(f"{resource['path']}: not the file that datapackage.json describes", file=sys.stderr)
            wrong += 1
        if data.decode().splitlines()[0].split(",") != COLUMNS:
            print(f"{resource['path']}: other columns than this script writes", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"server-metrics: {len(resources)} files as datapackage.json describes them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FILE", type=pathlib.Path, help="the CSV file to write; must not exist")
    parser.add_argument("--seconds", metavar="N", type=float, help="how long to record; until Ctrl-C if not given")
    parser.add_argument("--every", metavar="N", type=float, default=5, help="seconds between two rows (default 5)")
    parser.add_argument("--host", metavar="NAME", default=socket.gethostname(), help="what to write into the column host")
    parser.add_argument("--check", action="store_true", help="compare the sample with datapackage.json")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    if arguments.output is None:
        parser.error("--output FILE is required")
    if arguments.every <= 0:
        parser.error("--every must be above 0")
    return record(arguments)


if __name__ == "__main__":
    main()
