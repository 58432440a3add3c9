// Evaluates alerting rules over series, each minute, with the engine and templates of Prometheus. (promtool does the same, but takes ten
// minutes to build, because it contains all service discoveries.)
// The input is [{"expr": "…", "for": "5m", "annotations": {…}, "load": "…", "minutes": 20}, …], where `load` has series in the notation of
// promtool's rule tests. The output has, for each rule, an array of the annotations of the alerts that fire at the end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/template"
)

type rule struct {
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Annotations map[string]string `json:"annotations"`
	Load        string            `json:"load"`
	Minutes     int               `json:"minutes"`
}

// The interface that promqltest requires of a test.
type failing struct{}

func (failing) Helper()                        {}
func (failing) Errorf(format string, a ...any) { must(fmt.Errorf(format, a...)) }
func (failing) Fatal(a ...any)                 { must(fmt.Errorf("%v", a)) }
func (failing) Fatalf(format string, a ...any) { must(fmt.Errorf(format, a...)) }
func (failing) FailNow()                       { os.Exit(1) }
func (failing) Logf(format string, a ...any)   {}
func (failing) Cleanup(func())                 {}
func (failing) TempDir() string {
	dir, err := os.MkdirTemp("", "postern-promql-")
	must(err)
	return dir
}

func main() {
	var rules []rule
	must(json.NewDecoder(os.Stdin).Decode(&rules))
	results := [][]map[string]string{}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute})
	for _, one := range rules {
		results = append(results, firing(engine, one))
	}
	must(json.NewEncoder(os.Stdout).Encode(results))
}

func firing(engine *promql.Engine, one rule) []map[string]string {
	store := promqltest.LoadedStorage(failing{}, one.Load)
	defer store.Close()
	pending, err := model.ParseDuration(one.For)
	must(err)
	since := map[string]time.Time{}
	fired := []map[string]string{}
	for minute := 0; minute <= one.Minutes; minute++ {
		at := time.Unix(int64(minute*60), 0).UTC()
		query := func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
			q, err := engine.NewInstantQuery(ctx, store, nil, expr, at)
			if err != nil {
				return nil, err
			}
			defer q.Close()
			return q.Exec(ctx).Vector()
		}
		vector, err := query(context.Background(), one.Expr, at)
		must(err)
		now := map[string]time.Time{}
		fired = []map[string]string{}
		for _, sample := range vector {
			id := sample.Metric.String()
			now[id] = at
			if before, isKnown := since[id]; isKnown {
				now[id] = before
			}
			if at.Sub(now[id]) < time.Duration(pending) {
				continue
			}
			data := template.AlertTemplateData(sample.Metric.Map(), nil, "", promql.Sample{T: sample.T, F: sample.F, Metric: sample.Metric})
			said := map[string]string{}
			for name, text := range one.Annotations {
				defs := "{{$labels := .Labels}}{{$value := .Value}}"
				expander := template.NewTemplateExpander(context.Background(), defs+text, name, data, model.TimeFromUnix(at.Unix()), query, &url.URL{}, nil)
				said[name], err = expander.Expand()
				must(err)
			}
			fired = append(fired, said)
		}
		since = now
	}
	return fired
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
