#!/usr/bin/env python3
"""Makes the market-data sample beside this file: made-up messages, the same bytes every time.

    make.py                      write the sample and datapackage.json
    make.py --full DIR           write 20 days of 50,000 messages as CSV files into DIR
    make.py --check              compare the files of the sample with datapackage.json

The prices walk at random from a fixed seed. One message is not made up by chance: the message of ZXZZT that the
README of the sample shows. No package beyond the standard library is needed.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent

SEED = 1_426_535_612
FIRST_DAY = datetime.date(2015, 3, 16)
DAYS = 2
MESSAGES = 700
FULL_DAYS = 20
FULL_MESSAGES = 50_000
FULL_SEED = SEED + 1

HEADER = [
    "exchange", "symbol", "bid", "ask", "bid_size", "ask_size", "last_sale", "last_size", "volume", "quote_time", "trade_time",
]  # fmt: skip
# Test tickers, no companies: exchange, symbol, and the price that it starts from, in cents.
BUSY = [("NASDAQ", "ZXZZT", 60_055), ("NASDAQ", "ZVZZT", 1_012), ("NYSE", "NTEST", 10_000)]
QUIET = [
    ("NASDAQ", "ZWZZT", 1_525), ("NASDAQ", "ZJZZT", 2_250), ("NASDAQ", "ZBZZT", 4_999),
    ("NYSE", "CTEST", 8_015), ("NYSE", "MTEST", 725), ("AMEX", "ATEST", 3_310), ("AMEX", "CBO", 1_801),
]  # fmt: skip
# 90 of 100 messages are of a busy ticker. About 10 of 100 carry a trade alone, 20 of 100 a quote and a trade.
BUSY_SHARE = 0.9
BOTH_SHARE = 0.2
TRADE_SHARE = 0.1

# The message of the schema guide: day 1 at 12:53:32.
GUIDE_TRADE_TIME = "2015-03-16T12:53:32.045"
GUIDE_VOLUME = 89_000
GUIDE_ROW = [
    "NASDAQ", "ZXZZT", "600.55", "600.60", "500", "1500", "600.58", "300", "89000", "2015-03-16T12:53:32.156", GUIDE_TRADE_TIME,
]  # fmt: skip


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def text(cents):
    return f"{cents // 100}.{cents % 100:02}"


def moment(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}"


def day_of(day, count, prices, dice, with_guide):
    """The messages of one day as rows, by the time of their newest part; `prices` moves on."""
    opening = datetime.datetime.combine(day, datetime.time(6, 30))
    length = 390 * 60_000
    # Distinct moments, so that no two messages of a ticker share one.
    moments = sorted(dice.sample(range(1_000, length), count))
    guide = datetime.datetime.fromisoformat(GUIDE_ROW[9])
    guide_done = not with_guide or day != guide.date()
    volumes = dict.fromkeys(prices, 0)
    rows, trades = [], {(("NASDAQ", "ZXZZT"), datetime.datetime.fromisoformat(GUIDE_TRADE_TIME))}
    busy = [number < round(count * BUSY_SHARE) for number in range(count)]
    dice.shuffle(busy)
    for at, is_busy in zip(moments, busy):
        time = opening + datetime.timedelta(milliseconds=at)
        if not guide_done and time > guide:
            guide_done = True
            rows.append(GUIDE_ROW)
            volumes["NASDAQ", "ZXZZT"] += int(GUIDE_ROW[7])
        exchange, symbol, _ = dice.choice(BUSY if is_busy else QUIET)
        ticker = exchange, symbol
        prices[ticker] = max(100, prices[ticker] + dice.choice([-5, -2, -1, -1, 0, 0, 1, 1, 2, 5]))
        bid, spread = prices[ticker], dice.choice([1, 2, 3, 5])
        kind = dice.random()
        quote, trade = [""] * 5, [""] * 4
        if kind >= TRADE_SHARE:
            quote = [text(bid), text(bid + spread), dice.randrange(1, 30) * 100, dice.randrange(1, 30) * 100, moment(time)]
        if kind < TRADE_SHARE + BOTH_SHARE:
            size = dice.randrange(1, 12) * 100
            volumes[ticker] += size
            before = dice.randrange(0, 500) if quote[4] else 0
            sold = time - datetime.timedelta(milliseconds=before)
            while (ticker, sold) in trades:
                sold -= datetime.timedelta(milliseconds=1)
            trades.add((ticker, sold))
            trade = [text(bid + dice.randrange(0, spread + 1)), size, volumes[ticker], moment(sold)]
        rows.append([exchange, symbol, *quote[:4], *trade[:3], quote[4], trade[3]])
    return rows


def shift_volume(rows):
    """Adds to the volumes of the guide's ticker what was sold before the sample's first trade."""
    sold = 0
    for row in rows:
        if row[1] == "ZXZZT" and row[7] != "":
            sold += int(row[7])
            if row is GUIDE_ROW:
                break
    else:
        return
    for row in rows:
        if row[1] == "ZXZZT" and row[8] != "" and row is not GUIDE_ROW:
            row[8] += GUIDE_VOLUME - sold


def days(count, messages, seed, with_guide):
    dice = random.Random(seed)
    prices = {(exchange, symbol): price for exchange, symbol, price in BUSY + QUIET}
    day, made = FIRST_DAY, 0
    while made < count:
        if day.weekday() < 5:
            rows = day_of(day, messages, prices, dice, with_guide)
            shift_volume(rows)
            yield day, (",".join(HEADER) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)).encode()
            made += 1
        day += datetime.timedelta(days=1)


def describe(files):
    """The Frictionless data package of the sample."""
    types = {
        "exchange": ("string", "at most 6 characters"),
        "symbol": ("string", "at most 5 characters"),
        "bid": ("number", "two decimals; empty without a quote"),
        "ask": ("number", "two decimals; empty without a quote"),
        "bid_size": ("integer", "shares; empty without a quote"),
        "ask_size": ("integer", "shares; empty without a quote"),
        "last_sale": ("number", "two decimals; empty without a trade"),
        "last_size": ("integer", "shares; empty without a trade"),
        "volume": ("integer", "shares traded since the start of the day; empty without a trade"),
        "quote_time": ("datetime", "America/Los_Angeles; empty without a quote"),
        "trade_time": ("datetime", "America/Los_Angeles; empty without a trade"),
    }
    fields = [{"name": name, "type": kind, "description": about} for name, (kind, about) in types.items()]
    return {
        "name": "market-data",
        "title": "Made-up quotes and trades of 10 test tickers, 2 days",
        "licenses": [
            {
                "name": "Apache-2.0",
                "title": "Apache License 2.0",
                "path": "https://www.apache.org/licenses/LICENSE-2.0",
            }
        ],
        "sources": [{"title": f"make.py, seed {SEED}: no market's data", "path": "make.py"}],
        "resources": [
            {
                "name": path.rpartition(".")[0],
                "path": path,
                "format": "csv",
                "mediatype": "text/csv",
                "bytes": len(data),
                "hash": f"sha256:{sha256(data)}",
                "rows": data.count(b"\n") - 1,
                "schema": {"fields": fields},
            }
            for path, data in files.items()
        ],
    }


def make_sample():
    files = {f"{day}.csv": data for day, data in days(DAYS, MESSAGES, SEED, with_guide=True)}
    for path, data in files.items():
        (HERE / path).write_bytes(data)
    (HERE / "datapackage.json").write_text(json.dumps(describe(files), indent=2) + "\n")
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes in {HERE}")


def make_full(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for day, data in days(FULL_DAYS, FULL_MESSAGES, FULL_SEED, with_guide=False):
        (folder / f"{day}.csv").write_bytes(data)
    print(f"{FULL_DAYS} days of {FULL_MESSAGES} messages in {folder}")


def check():
    wrong = 0
    made = {f"{day}.csv": data for day, data in days(DAYS, MESSAGES, SEED, with_guide=True)}
    resources = json.loads((HERE / "datapackage.json").read_text())["resources"]
    for resource in resources:
        data = (HERE / resource["path"]).read_bytes()
        if (len(data), f"sha256:{sha256(data)}") != (resource["bytes"], resource["hash"]):
            print(f"{resource['path']}: not the file that datapackage.json describes", file=sys.stderr)
            wrong += 1
        if made.get(resource["path"]) != data:
            print(f"{resource['path']}: not the file that this script makes", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"market-data: {len(resources)} files as datapackage.json describes them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", metavar="DIR", type=pathlib.Path, help="write 20 days of 50,000 messages into DIR")
    parser.add_argument("--check", action="store_true", help="compare the sample with datapackage.json")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    if arguments.full:
        return make_full(arguments.full)
    return make_sample()


if __name__ == "__main__":
    main()
