"""The histogram: small, and never far off."""

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from a2mcp.bench.histogram import Histogram, bounds_of, bucket_of

micros = st.integers(min_value=0, max_value=(1 << 40) - 1)


@given(micros)
def test_a_value_lies_within_the_bounds_of_its_bucket(value):
    """Ours: bucket_of and bounds_of are inverse to each other."""
    low, high = bounds_of(bucket_of(value))
    assert low <= value < high
    assert high - low <= max(1, low / 64)


@given(micros)
def test_buckets_follow_each_other_without_a_gap(value):
    """Ours: the bucket of the next value is the same or the next one."""
    assert bucket_of(value + 1) - bucket_of(value) in {0, 1}


@given(st.lists(micros, min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_a_percentile_is_off_by_a_64th_at_most(values, share):
    """Ours: against the exact percentile of the sorted list."""
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert exact <= histogram.percentile(share) <= exact + exact / 64 + 1


@settings(max_examples=30)
@given(st.lists(micros, max_size=50), st.lists(micros, max_size=50))
def test_adding_two_histograms_is_recording_all_values_in_one(first, second):
    """Ours: a mix is measured step by step and then joined."""
    one, two, both = Histogram(), Histogram(), Histogram()
    for value in first:
        one.record(value)
        both.record(value)
    for value in second:
        two.record(value)
        both.record(value)
    one.add(two)
    for name in ("count", "total", "shortest", "longest", "mean"):
        assert getattr(one, name) == getattr(both, name)
    assert one.bars() == both.bars()


@settings(max_examples=30)
@given(st.lists(micros, min_size=1, max_size=100))
def test_bars_hold_every_value_and_leave_no_hole(values):
    """Ours: a drawing must not lose calls."""
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    bars = histogram.bars()
    assert sum(bar.count for bar in bars) == len(values)
    assert all(left.high == right.low for left, right in itertools.pairwise(bars))


def test_an_empty_histogram_is_all_zeroes():
    """Ours: a run in which every call failed still has a report."""
    histogram = Histogram()
    assert (histogram.percentile(0.5), histogram.mean, histogram.bars()) == (0, 0.0, [])


def test_what_is_out_of_range_is_counted_at_the_edge():
    """Ours: a clock that went wrong must not end a run."""
    histogram = Histogram()
    histogram.record(-5)
    histogram.record(1 << 50)
    assert (histogram.count, histogram.shortest, histogram.longest) == (2, 0, (1 << 40) - 1)
