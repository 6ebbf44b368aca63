// Command helm checks and renders a chart with Helm's own packages, for tests only: it prints
// what helm lint and helm template would.
//
//	helm CHART NAME NAMESPACE [VALUES-FILE]
//
// It is a module of its own, so that Helm is not in the product's graph of modules.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: helm CHART NAME NAMESPACE [VALUES-FILE]")
		os.Exit(2)
	}
	if err := renderChart(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func renderChart(path, name, namespace string, files []string) error {
	values := chartutil.Values{}
	for _, f := range files {
		var err error
		if values, err = chartutil.ReadValuesFile(f); err != nil {
			return err
		}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		var found []error
		for _, m := range lint.All(path, values, namespace, true).Messages {
			if m.Severity > support.InfoSev {
				found = append(found, m)
			}
		}
		if len(found) > 0 {
			return errors.Join(found...)
		}
	}
	c, err := loader.Load(path)
	if err != nil {
		return err
	}
	options := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	texts, err := engine.Render(c, all)
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		if strings.HasSuffix(file, ".yaml") && strings.TrimSpace(texts[file]) != "" {
			fmt.Printf("---\n# %s\n%s\n", file, texts[file])
		}
	}
	return nil
}
