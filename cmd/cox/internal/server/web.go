package server

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func webCommand(a *cli.App) *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the web console, signed in",
		Long: `Asks the server for a link to its web console and opens it in your browser. The
link works once, for one minute, and signs the browser in as you for 12 hours.

cox token list shows the session; cox token revoke ID ends it.

Without a display, and with --print, the link is printed.`,
		Example: "  cox web\n  cox web --print",
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			l, err := c.NewWebLink(cmd.Context())
			switch {
			case err != nil:
				return err
			case l.URL == "":
				return fault.New(fault.Unsupported, "the server listens on its socket alone, which no browser opens").
					Advise("leave out listen.tcp in cox.yaml, or set it to auto or 127.0.0.1:7461, and restart the server")
			}
			return openConsole(cmd.Context(), a, c, l, show)
		}),
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the link and open nothing")
	return cmd
}

// openConsole opens a link in the browser, or prints it where none can be opened.
func openConsole(ctx context.Context, a *cli.App, c *client.Client, l *api.WebLink, show bool) error {
	if host, tunnelled := strings.CutPrefix(c.Address().SSH, "ssh://"); tunnelled {
		return printTunnelled(a, host, l)
	}
	opener := findOpener()
	if !show && len(opener) > 0 {
		if err := exec.CommandContext(ctx, opener[0], append(opener[1:], l.URL)...).Run(); err == nil {
			at, _, _ := strings.Cut(l.URL, "/login")
			_, err := fmt.Fprintf(a.Out, "opened the web console of %s in the browser\n", at)
			return err
		}
	}
	if _, err := fmt.Fprintln(a.Out, l.URL); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Err, "open it in a browser on the server's machine until %s; it works once\n", a.Page(a.Err).Time(l.Expires.Truncate(time.Second)))
	return err
}

// printTunnelled says how to reach a server behind SSH with a browser.
func printTunnelled(a *cli.App, host string, l *api.WebLink) error {
	u, err := url.Parse(l.URL)
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, "/")
	ssh := "ssh " + host
	if name, port, ok := strings.Cut(host, ":"); ok {
		ssh = "ssh -p " + port + " " + name
	}
	if _, err := fmt.Fprintf(a.Err, "the server is on another machine. Within a minute, in a second terminal:\n  %s -N -L %s:%s\nand open:\n", ssh, u.Port(), u.Host); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, l.URL)
	return err
}

// findOpener is the program that opens links in the user's browser, with its arguments; none: there is
// no display, or no such program.
func findOpener() []string {
	switch {
	case runtime.GOOS == "darwin" && os.Getenv("SSH_CONNECTION") == "":
		return []string{"open"}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return nil
	}
	if path, err := exec.LookPath("xdg-open"); err == nil {
		return []string{path}
	}
	return nil
}
