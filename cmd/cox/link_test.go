package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestBinariesStayLean: what costs start-up time stays out of the binaries that
// start often. The terminal libraries of cox-top cost more than all of cox; cox-slurm
// and the supervisor start thousands of times.
func TestBinariesStayLean(t *testing.T) {
	const (
		cobra    = "github.com/spf13/cobra"
		http     = "net/http"
		tls      = "crypto/tls"
		sqlite   = "modernc.org/sqlite"
		width    = "github.com/mattn/go-runewidth"
		terminal = "charm.land/bubbletea/v2"
		lipgloss = "charm.land/lipgloss/v2"
		yaml     = "github.com/goccy/go-yaml"
	)
	for _, c := range []struct {
		binary    string
		env       string
		without   []string
		certainly string // the test sees what it looks for
	}{
		{"cox-slurm", "GOOS=linux", []string{cobra, http, tls, sqlite, width, terminal, lipgloss, yaml}, "os"},
		{"cox", "GOOS=linux", []string{width, terminal, lipgloss}, cobra},
		{"cox", "GOOS=darwin", []string{width, terminal, lipgloss, sqlite}, cobra},
		{"cox-top", "GOOS=linux", []string{sqlite, cobra, yaml}, terminal},
	} {
		cmd := exec.Command("go", "list", "-deps", "../"+c.binary)
		cmd.Env = append(cmd.Environ(), c.env, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", c.binary, err)
		}
		deps := strings.Fields(string(out))
		if !slices.Contains(deps, c.certainly) {
			t.Errorf("%s (%s) does not link %s: the test looks at the wrong thing", c.binary, c.env, c.certainly)
		}
		for _, d := range c.without {
			if slices.Contains(deps, d) {
				t.Errorf("%s (%s) links %s", c.binary, c.env, d)
			}
		}
	}
}

// TestTheClientBuildsForMacOS: all that asks a server must not need Linux.
func TestTheClientBuildsForMacOS(t *testing.T) {
	if testing.Short() {
		t.Skip("builds for another system")
	}
	for _, binary := range []string{"cox", "cox-top"} {
		cmd := exec.Command("go", "vet", "../"+binary) // type-checks all that is built, without a linker's work
		cmd.Env = append(cmd.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", binary, err, out)
		}
	}
}
