# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format, version 0.0.4, read strictly: what its own parser would refuse, this refuses."""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)$")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


def labels_of(text):
    out, at = {}, 0
    while text and at < len(text):
        m = LABEL.match(text, at)
        assert m, f"malformed labels: {text}"
        assert m[1] not in out, f"label twice: {text}"
        out[m[1]] = m[2]
        at = m.end()
        if at < len(text):
            assert text[at] == ",", text
            at += 1
    return out


def parse(text):
    """{(name, ((label, value), ...)): number}; families must be whole, documented, unique and well-formed."""
    assert text.endswith("\n") and "\r" not in text
    samples, kinds, helps, closed, family = {}, {}, set(), set(), None
    for line in text[:-1].split("\n"):
        m = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if m:
            if m[2] != family:
                assert m[2] not in closed, f"{m[2]} is in two places"
                closed.add(family)
                family = m[2]
            if m[1] == "HELP":
                assert m[2] not in helps, line
                helps.add(m[2])
            else:
                assert m[2] not in kinds and m[3] in ("counter", "gauge", "histogram", "summary"), line
                kinds[m[2]] = m[3]
            continue
        m = SAMPLE.match(line)
        assert m, f"malformed: {line!r}"
        assert family in kinds and family in helps, f"no TYPE and HELP before {line!r}"
        assert m[1] in [family + s for s in SUFFIXES.get(kinds[family], ("",))], f"{line!r} is in {family}"
        key = m[1], tuple(sorted(labels_of(m[2]).items()))
        assert key not in samples, f"twice: {line!r}"
        samples[key] = float(m[3])
        assert not math.isnan(samples[key]), line
        assert samples[key] >= 0 or kinds[family] == "gauge", line
        if kinds[family] == "counter" and not m[1].endswith("_total"):
            assert m[1] in ("apiserver_storage_revision",), f"a counter's name ends in _total: {m[1]}"
    check_histograms(samples, [k for k, v in kinds.items() if v == "histogram"])
    return samples


def check_histograms(samples, names):
    for name in names:
        series = {}
        for (sample, labels), value in samples.items():
            if sample == name + "_bucket":
                rest = tuple(x for x in labels if x[0] != "le")
                series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
        for rest, buckets in series.items():
            assert buckets == sorted(buckets) and buckets[-1][0] == math.inf, (name, rest)
            counts = [n for _, n in buckets]
            assert counts == sorted(counts), (name, rest)
            assert counts[-1] == samples[name + "_count", rest], (name, rest)
            assert (name + "_sum", rest) in samples, (name, rest)
