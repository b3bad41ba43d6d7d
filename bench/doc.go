// Command bench measures the processor against what it could be at best and against what people write instead, all on
// one machine, on one Postgres and in one run:
//
//	a  raw COPY of the very journal rows that b wrote, encoded beforehand, into a table with the same indexes
//	b  the processor over a log of commands that is there already
//	c  a plain consume loop over commands of the same mix, a transaction each (loop.go)
//	d  latency of b and c at part load, and the CPU time of b at a tenth of its rate
//	e  as b, but all commands are for one aggregate on one partition
//	f  as b, on Apache Kafka
//
// Rounds interleave them, so that what the machine does besides falls on all; ratios are taken within a round, and
// their median is reported. The last line of the output is one JSON object. docs/performance.md reads the numbers.
package main
