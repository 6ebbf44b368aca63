package config

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/spec"
)

// Check checks a configuration that came from more than a file.
func (c *Config) Check() error { return c.check("", nil) }

// check finds what the types cannot: relations between fields, ranges, names.
func (c *Config) check(file string, data []byte) error {
	p := problems{file: file, lines: strings.Split(string(data), "\n")}
	if !name(c.Name) {
		p.add("name", "%q is no name: letters, digits, - and _", c.Name)
	}
	p.absolute("dir", c.State.Dir)
	p.absolute("socket", c.Listen.Socket)
	if len(c.Listen.Socket) > 100 {
		p.add("socket", "%d characters are more than a unix socket's name may have (100)", len(c.Listen.Socket))
	}
	p.tcp(c.Listen.TCP)
	p.room(&c.Room)
	p.pools(c.Pools)
	p.views(c)
	p.between("max_array", c.Jobs.MaxArray, 1, 4_000_001)
	if c.Jobs.Upload > c.Jobs.Uploads {
		p.add("upload", "jobs.upload (%s) is more than jobs.uploads (%s), the room for all archives of a user: lower the one or raise the other", c.Jobs.Upload, c.Jobs.Uploads)
	}
	p.between("processes", c.Jobs.Processes, -1, 1<<30)
	for field, path := range map[string]string{"prolog": c.Hooks.Prolog, "epilog": c.Hooks.Epilog} {
		if path != "" {
			p.absolute(field, path)
		}
	}
	if len(c.Notify.Command) > 0 && c.Notify.SMTP.Addr != "" {
		p.add("command", "mail leaves by a command or by smtp, not by both")
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		p.add("level", "%q is none of debug, info, warn, error", c.Log.Level)
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		p.add("format", "%q is neither text nor json", c.Log.Format)
	}
	slices.SortStableFunc(p.errs, func(a, b *spec.Error) int { return strings.Compare(a.Message, b.Message) })
	return spec.Join(p.errs)
}

// problems collects errors with the line of the field that they are about.
type problems struct {
	file  string
	lines []string
	errs  []*spec.Error
}

func (p *problems) add(field, format string, args ...any) {
	e := &spec.Error{File: p.file, Message: field + ": " + fmt.Sprintf(format, args...)}
	for i, line := range p.lines {
		if m := keyLine.FindStringSubmatch(line); m != nil && m[2] == field {
			e.Line, e.Col, e.Len, e.Text = i+1, len(m[1])+1, len(strings.TrimSpace(line[len(m[1]):])), line
			break
		}
	}
	p.errs = append(p.errs, e)
}

func (p *problems) absolute(field, path string) {
	if !filepath.IsAbs(path) {
		p.add(field, "%q is not an absolute path", path)
	}
}

func (p *problems) between(field string, v, low, high int) {
	if v < low || v > high {
		p.add(field, "%d is not between %d and %d", v, low, high)
	}
}

func (p *problems) tcp(addr string) {
	if addr == "auto" || addr == "none" {
		return
	}
	host, port, err := net.SplitHostPort(addr)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 0 || n > 65535 {
		p.add("tcp", "%q is no address: write 127.0.0.1:7461, auto or none", addr)
		return
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		p.add("tcp", "%q is not a loopback address: tokens would cross the network unencrypted; forward a port over SSH instead", addr)
	}
}

func (p *problems) room(r *Room) {
	p.between("nodes", r.Nodes, 0, 1000)
	p.between("gpus_per_node", r.GPUsPerNode, -1, 128)
	p.between("cpus", r.CPUs, 0, 65536)
	p.between("nodes_per_leaf", r.NodesPerLeaf, 0, 1000)
	p.between("leaves_per_block", r.LeavesPerBlock, 0, 1000)
	if r.LeavesPerBlock > 0 && r.NodesPerLeaf == 0 {
		p.add("leaves_per_block", "there are no leaves to make blocks of: give nodes_per_leaf too")
	}
	depth := 0
	if r.NodesPerLeaf > 0 {
		depth = 1
	}
	if r.LeavesPerBlock > 0 {
		depth = 2
	}
	if n := len(r.Levels); n > 0 && n != depth {
		p.add("levels", "%d names for %d levels: there are leaves with nodes_per_leaf, and blocks of them with leaves_per_block", n, depth)
	}
	for i, name := range r.Levels {
		if !levelName.MatchString(name) || slices.Contains(r.Levels[:i], name) {
			p.add("levels", "%q is no name of a level, or stands there twice: begin with a letter, then letters, digits, - and _", name)
		}
	}
	if len(r.Names) > r.Nodes {
		p.add("names", "%d names for %d virtual nodes", len(r.Names), r.Nodes)
	}
	if r.Nodes == 0 && r.GPUsPerNode > 0 {
		p.add("gpus_per_node", "this machine itself has the GPUs that it has: give nodes: 1 for a virtual node with declared ones")
	}
	for _, n := range append(slices.Clone(r.Features), append(slices.Clone(r.Names), r.GPUType)...) {
		if !name(n) {
			p.add("room", "%q is no name: letters, digits, - and _", n)
		}
	}
}

// pools leaves what a kind of engine makes of its settings to who opens it.
func (p *problems) pools(all []Pool) {
	seen := map[string]bool{}
	for _, x := range all {
		switch {
		case !name(x.Name):
			p.add("pools", "%q is no name: letters, digits, - and _", x.Name)
		case seen[x.Name]:
			p.add("pools", "%s stands there twice", x.Name)
		case x.Engine == "":
			p.add("pools", "%s: which engine has it? Write engine: slurm or engine: kube", x.Name)
		}
		seen[x.Name] = true
	}
}

func (p *problems) views(c *Config) {
	seen := map[string]bool{}
	defaults := 0
	for _, v := range c.Partitions {
		switch {
		case !name(v.Name):
			p.add("partitions", "%q is no name: letters, digits, - and _", v.Name)
		case seen[v.Name]:
			p.add("partitions", "%s stands there twice", v.Name)
		}
		seen[v.Name] = true
		if v.Default {
			defaults++
		}
		if _, err := hostlist.Expand(v.Nodes); v.Nodes != "" && err != nil {
			p.add("partitions", "%s: %v", v.Name, err)
		}
		if v.TimeLimit > 0 && v.DefaultTime > v.TimeLimit {
			p.add("partitions", "%s: default_time %s is longer than time_limit %s", v.Name, v.DefaultTime, v.TimeLimit)
		}
	}
	if defaults > 1 {
		p.add("partitions", "%d of them are the default", defaults)
	}
	accounts := map[string]bool{}
	for _, a := range c.Accounts {
		if !name(a.Name) || accounts[a.Name] {
			p.add("accounts", "%q is no name or stands there twice", a.Name)
		}
		accounts[a.Name] = true
	}
}

func name(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		if r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}

var levelName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)
