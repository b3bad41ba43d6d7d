package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// summary is the last line of the output. What was not measured is null. Ratios are medians of the rounds' ratios,
// rss_mb is the most of all rounds, everything else is a median.
type summary struct {
	CopyPerS         *float64 `json:"copy_per_s"`
	WritPerS         *float64 `json:"writ_per_s"`
	RatioToCopy      *float64 `json:"ratio_to_copy"`
	LoopPerS         *float64 `json:"loop_per_s"`
	RatioToLoop      *float64 `json:"ratio_to_loop"`
	P50Ms            *float64 `json:"p50_ms"`      // at half of writ_per_s
	P99Ms            *float64 `json:"p99_ms"`      // at half of writ_per_s
	LoopP99Ms        *float64 `json:"loop_p99_ms"` // at half of loop_per_s
	HotRatio         *float64 `json:"hot_ratio"`
	KafkaRatio       *float64 `json:"kafka_ratio"`
	PartLoadCPURatio *float64 `json:"part_load_cpu_ratio"`
	RSSMB            *float64 `json:"rss_mb"`
}

// series is one figure over the rounds that have it.
type series []float64

// over collects a figure of every round that has it.
func over[M any](rounds []round, of func(round) *M, figure func(*M) float64) (s series) {
	for _, r := range rounds {
		if m := of(r); m != nil {
			s = append(s, figure(m))
		}
	}
	return s
}

// ratios are those of two figures of the same round.
func ratios(a, b series) (s series) {
	if len(a) != len(b) {
		return nil // one of them was not measured
	}
	for i := range a {
		s = append(s, a[i]/b[i])
	}
	return s
}

func (s series) median() *float64 {
	if len(s) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(s))
	m := (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
	return &m
}

func (s series) max() *float64 {
	if len(s) == 0 {
		return nil
	}
	m := slices.Max(s)
	return &m
}

// show writes lowest, median and highest.
func (s series) show(digits int) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f / %.*f / %.*f", digits, slices.Min(s), digits, *s.median(), digits, slices.Max(s))
}

// mid writes the median.
func (s series) mid(digits int) string {
	if len(s) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, *s.median())
}

// A part is a row of the table.
type part struct {
	name string
	of   func(round) *result
}

var parts = []part{
	{"a  raw COPY", func(r round) *result { return r.copy }},
	{"b  processor", func(r round) *result { return r.writ }},
	{"c  plain loop", func(r round) *result { return r.loop }},
	{"e  one aggregate", func(r round) *result { return r.hot }},
	{"f  Apache Kafka", func(r round) *result { return r.kafka }},
}

type loadPart struct {
	name string
	of   func(round) *load
}

var loadParts = []loadPart{
	{"d  processor, half its rate", func(r round) *load { return r.half }},
	{"d  processor, 1,000/s", func(r round) *load { return r.slow }},
	{"d  processor, a tenth of its rate", func(r round) *load { return r.tenth }},
	{"d  plain loop, half its rate", func(r round) *load { return r.loopHalf }},
	{"d  plain loop, 1,000/s", func(r round) *load { return r.loopSlow }},
}

func report(out io.Writer, rounds []round) error {
	fmt.Fprintln(out, "\nThroughput: commands/s as lowest / median / highest round; CPU time in µs per command, of all processes without the load, median")
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tcommands/s\tCPU\tPostgres\tbroker\tworker\trows/transaction\tpeak MB")
	for _, p := range parts {
		if s := over(rounds, p.of, (*result).rate); s != nil {
			column := func(f func(*result) float64) string { return over(rounds, p.of, f).mid(1) }
			fmt.Fprintln(t, strings.Join([]string{p.name, s.show(0),
				column(func(r *result) float64 { return r.micros(r.cpu.served()) }),
				column(func(r *result) float64 { return r.micros(r.cpu.postgres) }),
				column(func(r *result) float64 { return r.micros(r.cpu.broker) }),
				column(func(r *result) float64 { return r.micros(r.cpu.worker) }),
				column(func(r *result) float64 { return r.journal.groupRows }),
				column(func(r *result) float64 { return r.peakMB }),
			}, "\t"))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s := over(rounds, parts[1].of, func(r *result) float64 { return r.journal.eventBytes }); s != nil {
		fmt.Fprintf(out, "b wrote %s bytes of events and %s bytes of row per command (mean)\n", s.mid(0),
			over(rounds, parts[1].of, func(r *result) float64 { return r.journal.rowBytes }).mid(0))
	}

	fmt.Fprintln(out, "\nLatency in ms, from the intended time of sending to the reply's arrival, as lowest / median / highest round; CPU time as above")
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tcommands/s\tp50\tp99\tCPU\tPostgres\tbroker\tworker\tload")
	for _, p := range loadParts {
		if s := over(rounds, p.of, func(l *load) float64 { return l.rate }); s != nil {
			column := func(f func(*load) float64) string { return over(rounds, p.of, f).mid(1) }
			fmt.Fprintln(t, strings.Join([]string{p.name, s.mid(0),
				over(rounds, p.of, func(l *load) float64 { return l.quantile(0.5) }).show(1),
				over(rounds, p.of, func(l *load) float64 { return l.quantile(0.99) }).show(1),
				column(func(l *load) float64 { return l.micros(l.cpu.served()) }),
				column(func(l *load) float64 { return l.micros(l.cpu.postgres) }),
				column(func(l *load) float64 { return l.micros(l.cpu.broker) }),
				column(func(l *load) float64 { return l.micros(l.cpu.worker) }),
				column(func(l *load) float64 { return l.micros(l.cpu.self) }),
			}, "\t"))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}

	s, shown := summarise(rounds)
	fmt.Fprintln(out, "\nRatios within a round, as lowest / median / highest round")
	t = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range shown {
		fmt.Fprintf(t, "%s\t%s\n", line.name, line.series.show(2))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s\n", text)
	return err
}

type named struct {
	name   string
	series series
}

func summarise(rounds []round) (summary, []named) {
	rate := func(p part) series { return over(rounds, p.of, (*result).rate) }
	copied, writ, loop, hot, kafka := rate(parts[0]), rate(parts[1]), rate(parts[2]), rate(parts[3]), rate(parts[4])
	toCopy, toLoop, toHot, toKafka := ratios(writ, copied), ratios(writ, loop), ratios(hot, writ), ratios(kafka, writ)
	partLoad := ratios(
		over(rounds, loadParts[2].of, func(l *load) float64 { return l.micros(l.cpu.served()) }),
		over(rounds, parts[1].of, func(r *result) float64 { return r.micros(r.cpu.served()) }))
	p99 := over(rounds, loadParts[0].of, func(l *load) float64 { return l.quantile(0.99) })
	loopP99 := over(rounds, loadParts[3].of, func(l *load) float64 { return l.quantile(0.99) })
	return summary{
			CopyPerS: copied.median(), WritPerS: writ.median(), RatioToCopy: toCopy.median(),
			LoopPerS: loop.median(), RatioToLoop: toLoop.median(),
			P50Ms: over(rounds, loadParts[0].of, func(l *load) float64 { return l.quantile(0.5) }).median(),
			P99Ms: p99.median(), LoopP99Ms: loopP99.median(),
			HotRatio: toHot.median(), KafkaRatio: toKafka.median(), PartLoadCPURatio: partLoad.median(),
			RSSMB: over(rounds, parts[1].of, func(r *result) float64 { return r.peakMB }).max(),
		}, []named{
			{"b / a  processor to COPY", toCopy},
			{"b / c  processor to loop", toLoop},
			{"e / b  one aggregate to many", toHot},
			{"f / b  Apache Kafka to embedded broker", toKafka},
			{"d / b  CPU at a tenth to CPU at the top", partLoad},
			{"p99 at half of the own rate, processor to loop", ratios(p99, loopP99)},
		}
}

// machine says what the run is on.
func machine() string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo") // else it stays unknown
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, %d cores, %s %s/%s", model, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
