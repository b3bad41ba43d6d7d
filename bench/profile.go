package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiler writes profiles of the time between start and stop, and the metrics at its end, to files that begin with
// prefix. Without a prefix it does nothing.
type profiler struct {
	prefix  string
	metrics http.Handler
	cpu     *os.File
}

func (p *profiler) start() (err error) {
	if p.prefix == "" {
		return nil
	}
	runtime.SetMutexProfileFraction(10)
	if p.cpu, err = os.Create(p.prefix + "cpu.pprof"); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.cpu)
}

func (p *profiler) stop() error {
	if p.prefix == "" {
		return nil
	}
	pprof.StopCPUProfile()
	faults := []error{p.cpu.Close()}
	for _, name := range []string{"heap", "allocs", "mutex", "goroutine"} {
		faults = append(faults, p.write(name))
	}
	page := httptest.NewRecorder()
	p.metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return errors.Join(append(faults, os.WriteFile(p.prefix+"metrics.txt", page.Body.Bytes(), 0o644))...)
}

func (p *profiler) write(name string) error {
	f, err := os.Create(p.prefix + name + ".pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
