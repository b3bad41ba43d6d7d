package main

import (
	"slices"
	"testing"
	"time"
)

func measured(rate int, busy time.Duration) *result {
	return &result{commands: rate, took: time.Second, cpu: cpu{machine: busy + time.Second, self: time.Second}, peakMB: float64(rate)}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	t.Parallel()
	// The machine is twice as slow in the second round, and three times in the third.
	rounds := []round{
		{copy: measured(1200, time.Second), writ: measured(600, time.Second)},
		{copy: measured(600, time.Second), writ: measured(240, time.Second)},
		{copy: measured(400, time.Second), writ: measured(240, time.Second)},
	}
	s, _ := summarise(rounds)
	if *s.RatioToCopy != 0.5 || *s.CopyPerS != 600 || *s.WritPerS != 240 || *s.RSSMB != 600 {
		t.Errorf("ratio %v, copy %v, writ %v, peak %v; want 0.5, 600, 240, 600", *s.RatioToCopy, *s.CopyPerS, *s.WritPerS, *s.RSSMB)
	}
	if s.RatioToLoop != nil || s.P99Ms != nil {
		t.Errorf("what was not measured is %v and %v", s.RatioToLoop, s.P99Ms)
	}
}

func TestPartLoadCountsTheTimeOfAllButTheLoad(t *testing.T) {
	t.Parallel()
	tenth := &load{latencies: make([]time.Duration, 100), cpu: cpu{machine: 700 * time.Millisecond, self: 200 * time.Millisecond}}
	s, _ := summarise([]round{{writ: measured(1000, time.Second), tenth: tenth}})
	if *s.PartLoadCPURatio != 5 { // 5 ms a command to 1 ms
		t.Errorf("ratio %v, want 5", *s.PartLoadCPURatio)
	}
}

func TestQuantilesAreOfSortedLatencies(t *testing.T) {
	t.Parallel()
	var l load
	if l.quantile(0.5) != 0 {
		t.Error("no latencies have a median")
	}
	for i := range 1000 {
		l.latencies = append(l.latencies, time.Duration(i)*time.Millisecond)
	}
	if got := []float64{l.quantile(0.5), l.quantile(0.99), l.quantile(1)}; !slices.Equal(got, []float64{500, 990, 999}) {
		t.Errorf("got %v", got)
	}
}

func TestMedianOfAnEvenNumberLiesBetween(t *testing.T) {
	t.Parallel()
	if got := *(series{4, 1, 3, 2}).median(); got != 2.5 {
		t.Errorf("got %v, want 2.5", got)
	}
}
