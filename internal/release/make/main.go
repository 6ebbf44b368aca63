// Command make builds a release from the sources: what make release calls.
//
//	make [-o FOLDER] [-targets linux/amd64,…]
//
// VERSION (v1.2.3) and SOURCE_DATE_EPOCH (seconds since 1970) outrank what git says.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/internal/release"
)

func main() {
	out := flag.String("o", "dist", "the folder for the files; it must be empty or missing")
	targets := flag.String("targets", "", "systems, separated by commas, as in linux/amd64,darwin/arm64 (default: all)")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := makeRelease(*out, *targets); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func makeRelease(out, targets string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	o := release.Options{Targets: release.Targets, Out: out, Go: os.Getenv("GO")}
	if targets != "" {
		o.Targets = nil
		for _, word := range strings.Split(targets, ",") {
			system, arch, _ := strings.Cut(word, "/")
			o.Targets = append(o.Targets, release.Target{OS: system, Arch: arch})
		}
	}
	if o.Source, err = release.FindSource(dir, os.Getenv("VERSION"), os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	names, err := release.Build(ctx, o)
	for _, name := range names {
		fmt.Println(filepath.Join(out, name))
	}
	return err
}
