package address

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Context is a server with a name.
type Context struct {
	Name    string `json:"name"`
	Server  string `json:"server" doc:"as COX_SERVER takes it"`
	Token   string `json:"-"`
	Current bool   `json:"current" doc:"commands ask it, unless they are told another"`
}

// ConfigDir is the folder of a user's configuration: $XDG_CONFIG_HOME/coxswain, else
// ~/.config/coxswain.
func (e Env) ConfigDir() string { return filepath.Join(e.configHome(), "coxswain") }

func (e Env) configHome() string {
	if dir := e.get("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(e.get("HOME"), ".config")
}

// contextsFile has a line for each context, separated by tabs: * for the current one, name,
// server, token.
func (e Env) contextsFile() string { return filepath.Join(e.ConfigDir(), "contexts") }

// Contexts are the servers with names, by name. None is no error.
func (e Env) Contexts() ([]Context, error) {
	b, err := os.ReadFile(e.contextsFile())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission) && e.UID == 0, e.get("HOME")+e.get("XDG_CONFIG_HOME") == "":
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Permission, "read the contexts: %w", err).Advise("make %s readable for you", e.contextsFile())
	}
	var out []Context
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) >= 4 && ValidContextName(f[1]) {
			out = append(out, Context{Name: f[1], Server: f[2], Token: f[3], Current: f[0] == "*"})
		}
	}
	slices.SortFunc(out, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// SaveContexts replaces the contexts. The file is for its owner alone: it may hold tokens.
func (e Env) SaveContexts(list []Context) error {
	var b strings.Builder
	for _, c := range list {
		mark := "-"
		if c.Current {
			mark = "*"
		}
		b.WriteString(strings.Join([]string{mark, c.Name, c.Server, c.Token}, "\t") + "\n")
	}
	file := e.contextsFile()
	save := func() error {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		tmp, err := os.CreateTemp(filepath.Dir(file), "contexts-") // mode 0600
		if err != nil {
			return err
		}
		defer os.Remove(tmp.Name())
		_, err = tmp.WriteString(b.String())
		if err := errors.Join(err, tmp.Close()); err != nil {
			return err
		}
		return os.Rename(tmp.Name(), file)
	}
	if err := save(); err != nil {
		return fault.New(fault.KindOf(err), "write the contexts: %w", err).Advise("make %s writable for you", filepath.Dir(file))
	}
	return nil
}

// ValidContextName reports whether a name can be that of a context: letters, digits, - and _, so
// that it is no address.
func ValidContextName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// findContext is the context of a name, or the current one for an empty name; nil: there is none.
func (e Env) findContext(name string) (*Context, error) {
	if name != "" && !ValidContextName(name) {
		return nil, nil
	}
	list, err := e.Contexts()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name == name || name == "" && list[i].Current {
			return &list[i], nil
		}
	}
	return nil, nil
}
