package registry

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Commands returns the commands of this package, each in its group of cox --help.
func Commands(a *cli.App) []*cobra.Command {
	return cli.InGroup(cli.GroupServer, registryCommand(a))
}

func registryCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Log in to container registries, for the images of your jobs",
		Long: `Your jobs' images are pulled with these logins. They are stored for you alone in
~/.config/coxswain/registry on this machine, and nowhere else. Log in on the machine
that runs the jobs.`,
		Example: "  cox registry login registry.example.org\n  cox registry list",
	}
	cmd.AddCommand(loginCommand(a), logoutCommand(a), listCommand(a))
	return cli.Local(cli.Group(cmd))
}

// openFolder is the folder of the caller's credentials.
func openFolder(a *cli.App) (registry.Folder, error) {
	d := registry.FolderOf(a.Getenv)
	if d == "" {
		return "", fault.New(fault.Invalid, "no directory for the login: neither HOME nor XDG_CONFIG_HOME is set").Advise("export HOME=DIRECTORY")
	}
	return d, nil
}

// loginOptions are the options of cox registry login.
type loginOptions struct {
	user      string
	stdin     bool
	tlsVerify bool
}

func loginCommand(a *cli.App) *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login HOST",
		Short: "Check and keep a user name and password for a registry",
		Long: `Asks the registry whether the password is right, and keeps it for the images of
your jobs. A login replaces the one before. Without --username and --password-stdin,
a terminal is asked.`,
		Example: `  cox registry login registry.example.org --username anna
  cox registry login nvcr.io --username '$oauthtoken' --password-stdin < key
  cox registry login 127.0.0.1:5000 --tls-verify=false`,
		Args: oneHost("cox registry login"),
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := checkHost(args[0])
			if err != nil {
				return err
			}
			if err := refuseElsewhere(a, host); err != nil {
				return err
			}
			d, err := openFolder(a)
			if err != nil {
				return err
			}
			list, err := d.Load()
			if err != nil {
				return err
			}
			c := registry.Credential{Host: host}
			if c.User, c.Password, err = askLogin(a, o); err != nil {
				return err
			}
			if err := checkLogin(cmd.Context(), c, !o.tlsVerify); err != nil {
				return err
			}
			list = append(slices.DeleteFunc(list, func(old registry.Credential) bool { return old.Host == host }), c)
			if err := d.Save(list); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s: logged in as %s\n", host, c.User)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&o.user, "username", "u", "", "the user's name at the registry")
	fl.BoolVar(&o.stdin, "password-stdin", false, "read the password from standard input")
	fl.BoolVar(&o.tlsVerify, "tls-verify", true, "false: take any certificate, and plain HTTP")
	return cmd
}

func oneHost(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fault.New(fault.Invalid, "%s needs the name of one registry", command).Advise("%s registry.example.org", command)
		}
		return nil
	}
}

// checkHost is the registry that a word names.
func checkHost(word string) (string, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(word, "https://"), "/")
	if u, err := url.Parse("https://" + host); err != nil || host == "" || u.Host != host {
		return "", fault.New(fault.Invalid, "%q is no registry", word).Advise("write its name and port alone, as in registry.example.org or 10.0.0.5:5000")
	}
	return registry.NormalHost(host), nil
}

// refuseElsewhere refuses a login where the server is another machine: its jobs would not find it.
func refuseElsewhere(a *cli.App, host string) error {
	e := address.System()
	e.Getenv = a.Getenv
	at, err := e.Find(a.Server, "")
	if err != nil {
		return err
	}
	machine := at.SSH
	if u, err := url.Parse(at.URL); machine == "" && at.Socket == "" && err == nil && !isLoopback(u.Hostname()) {
		machine = at.URL
	}
	if machine == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "the server %s is another machine, and a login is kept on the machine that runs the jobs", machine).
		Advise("log in there: ssh MACHINE, then cox registry login %s", host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// askLogin gets user and password from options, standard input and the terminal.
func askLogin(a *cli.App, o loginOptions) (user, password string, err error) {
	user = o.user
	fd, isTerminal := cli.TerminalFd(a.In)
	if !o.stdin && !isTerminal {
		return "", "", fault.New(fault.Invalid, "no password: standard input is no terminal").Advise("cox registry login HOST --username NAME --password-stdin < FILE")
	}
	if user == "" {
		if o.stdin {
			return "", "", fault.New(fault.Invalid, "--password-stdin needs --username").Advise("add --username NAME")
		}
		fmt.Fprint(a.Err, "Username: ")
		if _, err := fmt.Fscanln(a.In, &user); err != nil {
			return "", "", fault.New(fault.Invalid, "no user name").Advise("add --username NAME")
		}
	}
	var text []byte
	if o.stdin {
		text, err = io.ReadAll(io.LimitReader(a.In, 64<<10))
	} else {
		fmt.Fprint(a.Err, "Password: ")
		text, err = term.ReadPassword(fd)
		fmt.Fprintln(a.Err)
	}
	if err != nil {
		return "", "", fmt.Errorf("read the password: %w", err)
	}
	password = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case password == "":
		return "", "", fault.New(fault.Invalid, "the password is empty").Advise("enter the password or the token of the registry")
	case strings.ContainsAny(user+password, "\r\n\x00") || strings.Contains(user, ":"):
		return "", "", fault.New(fault.Invalid, "a user name has no colon, and neither name nor password has more than one line").Advise("correct it")
	}
	return user, password, nil
}

func logoutCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "logout HOST | --all",
		Short:   "Remove the login of a registry",
		Example: "  cox registry logout registry.example.org\n  cox registry logout --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 0 {
				return nil
			}
			if all {
				return fault.New(fault.Invalid, "--all and a registry were given").Advise("leave one of them out")
			}
			return oneHost("cox registry logout")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := openFolder(a)
			if err != nil {
				return err
			}
			list, err := d.Load()
			if err != nil {
				return err
			}
			var gone, left []registry.Credential
			host := ""
			if !all {
				if host, err = checkHost(args[0]); err != nil {
					return err
				}
			}
			for _, c := range list {
				if all || c.Host == host {
					gone = append(gone, c)
				} else {
					left = append(left, c)
				}
			}
			if len(gone) == 0 && !all {
				return fault.New(fault.NotFound, "there is no login for %s", host).Advise("cox registry list shows the logins")
			}
			if len(gone) > 0 {
				if err := d.Save(left); err != nil {
					return err
				}
			}
			for _, c := range gone {
				fmt.Fprintf(a.Out, "%s: logged out\n", c.Host)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all registries")
	return cmd
}

func listCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List registries and user names, without passwords",
		Example: "  cox registry list\n  cox registry list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := openFolder(a)
			if err != nil {
				return err
			}
			list, err := d.Load()
			if err != nil {
				return err
			}
			var names []string
			for _, c := range list {
				names = append(names, c.Host)
			}
			switch {
			case f.IsData():
				return a.WriteData(f, append([]registry.Credential{}, list...)) // none is [], not null
			case f == cli.AsName:
				return a.WriteNames(names)
			case len(list) == 0:
				fmt.Fprintln(a.Err, "no logins          cox registry login HOST makes one")
				return nil
			}
			t := &printer.Table{Columns: []printer.Column{{Title: "REGISTRY"}, {Title: "USER"}}}
			for _, c := range list {
				t.Rows = append(t.Rows, []printer.Cell{{Text: c.Host, Tone: printer.Accent}, {Text: c.User}})
			}
			return t.Write(a.Out, a.Page(a.Out))
		},
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}
