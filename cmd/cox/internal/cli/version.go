package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/printer"
)

// release is the version of a release, which its build sets (internal/release).
var release string

// Version is that of the release, else the module's version, else the commit that it was built
// from.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "development " + s.Value[:min(12, len(s.Value))]
		}
	}
	return "development"
}

// QuickTimeout bounds what may be asked of a server on the way to something else.
const QuickTimeout = 250 * time.Millisecond

// ServerVersion is the version of the server, "" if none answers at once.
func (a *App) ServerVersion(ctx context.Context) string {
	c, err := a.Client()
	if err != nil {
		return ""
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, QuickTimeout)
	defer cancel()
	i, err := c.Info(ctx)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s, API %s, at %s", printer.Clean(i.Version), printer.Clean(i.API), c.Address())
}
