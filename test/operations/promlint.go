// Reads metrics in the exposition format, as a JSON string, and prints the problems that `promtool check metrics` finds, one per line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func main() {
	var scrape string
	must(json.NewDecoder(os.Stdin).Decode(&scrape))
	problems, err := promlint.New(strings.NewReader(scrape)).Lint()
	must(err)
	for _, problem := range problems {
		fmt.Println(problem.Metric + ": " + problem.Text)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
