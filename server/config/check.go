package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/notify"
	"github.com/coxswain-sched/coxswain/spec"
)

// Check checks a configuration that came from more than a file.
func (c *Config) Check() error { return c.checkRelations("", nil) }

// checkGateway checks what the gateway would refuse, before it is started.
func (p *problems) checkGateway(g *Gateway) {
	if _, port, err := net.SplitHostPort(g.Listen); g.Listen != "auto" && g.Listen != "none" && (err != nil || port == "") {
		p.addProblem("listen", "gateway.listen: %q is neither host:port, auto nor none", g.Listen)
	}
	if (g.Cert == "") != (g.Key == "") {
		p.addProblem("tls_cert", "a certificate has two files: set gateway.tls_cert and gateway.tls_key")
	}
	for field, path := range map[string]string{"tls_cert": g.Cert, "tls_key": g.Key, "access_log": g.AccessLog} {
		if path != "" {
			p.checkAbsolute(field, path)
		}
	}
	if host, _, err := net.SplitHostPort(g.Metrics); g.Metrics != "" && (err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback()) {
		p.addProblem("metrics", "gateway.metrics: %q is no loopback address with a port, as 127.0.0.1:9180", g.Metrics)
	}
}

// checkRelations finds what the types cannot: relations between fields, ranges, names.
func (c *Config) checkRelations(file string, data []byte) error {
	p := problems{file: file, lines: strings.Split(string(data), "\n")}
	if !isPoolName(c.Name) {
		p.addProblem("name", "%q is no name: letters, digits, - and _", c.Name)
	}
	p.checkAbsolute("dir", c.State.Dir)
	p.checkAbsolute("socket", c.Listen.Socket)
	if len(c.Listen.Socket) > 100 {
		p.addProblem("socket", "%d characters are more than a unix socket's name may have (100)", len(c.Listen.Socket))
	}
	p.checkTCP(c.Listen.TCP)
	p.checkGateway(&c.Gateway)
	p.checkRoom(&c.Room)
	p.checkPools(c.Pools)
	p.checkViews(c)
	p.checkRange("max_array", c.Jobs.MaxArray, 1, 4_000_001)
	if c.Jobs.Upload > c.Jobs.Uploads {
		p.addProblem("upload", "jobs.upload (%s) is more than jobs.uploads (%s), the room for all archives of a user: lower the one or raise the other", c.Jobs.Upload, c.Jobs.Uploads)
	}
	if c.Jobs.UploadDir != "" {
		p.checkAbsolute("upload_dir", c.Jobs.UploadDir)
	}
	if c.Jobs.UploadRoom < 1<<20 {
		p.addProblem("upload_room", "jobs.upload_room (%s) has no room for a directory: write 1M at least, for example 10G", c.Jobs.UploadRoom)
	}
	p.checkRange("processes", c.Jobs.Processes, -1, 1<<30)
	for field, path := range map[string]string{"prolog": c.Hooks.Prolog, "epilog": c.Hooks.Epilog} {
		if path != "" {
			p.checkAbsolute(field, path)
		}
	}
	if !slices.Contains([]string{"", "podman", "apptainer", "enroot", "docker"}, c.Containers.Runtime) {
		p.addProblem("runtime", "%q is none of podman, apptainer, enroot, docker", c.Containers.Runtime)
	}
	if c.Containers.Program != "" {
		p.checkAbsolute("program", c.Containers.Program)
		if c.Containers.Runtime == "" {
			p.addProblem("program", "say which runtime it is: runtime: podman, for example")
		}
	}
	for _, dir := range c.Containers.Mounts {
		p.checkAbsolute("mounts", dir)
	}
	if len(c.Notify.Command) > 0 && c.Notify.SMTP.Addr != "" {
		p.addProblem("command", "mail leaves by a command or by smtp, not by both")
	}
	p.checkHealth(&c.Health)
	p.checkWebhooks(&c.Notify)
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		p.addProblem("level", "%q is none of debug, info, warn, error", c.Log.Level)
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		p.addProblem("format", "%q is neither text nor json", c.Log.Format)
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

func (p *problems) addProblem(field, format string, args ...any) {
	e := &spec.Error{File: p.file, Message: field + ": " + fmt.Sprintf(format, args...)}
	for i, line := range p.lines {
		if m := keyLine.FindStringSubmatch(line); m != nil && m[2] == field {
			e.Line, e.Col, e.Len, e.Text = i+1, len(m[1])+1, len(strings.TrimSpace(line[len(m[1]):])), line
			break
		}
	}
	p.errs = append(p.errs, e)
}

func (p *problems) checkAbsolute(field, path string) {
	if !filepath.IsAbs(path) {
		p.addProblem(field, "%q is not an absolute path", path)
	}
}

func (p *problems) checkRange(field string, v, low, high int) {
	if v < low || v > high {
		p.addProblem(field, "%d is not between %d and %d", v, low, high)
	}
}

func (p *problems) checkTCP(addr string) {
	if addr == "auto" || addr == "none" {
		return
	}
	host, port, err := net.SplitHostPort(addr)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 0 || n > 65535 {
		p.addProblem("tcp", "%q is no address: write 127.0.0.1:7461, auto or none", addr)
		return
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		p.addProblem("tcp", "%q is not a loopback address: tokens would cross the network unencrypted; forward a port over SSH instead", addr)
	}
}

func (p *problems) checkWebhooks(n *Notify) {
	for _, w := range n.Webhooks {
		if err := job.CheckWebhook(w.URL); err != nil {
			p.addProblem("url", "%s: write it whole, https://hooks.example.org/…", err)
		}
		ofJobs := slices.DeleteFunc(slices.Clone(w.On), func(e string) bool { return e == notify.NodeEvents })
		if _, err := job.NotifyOn(ofJobs); err != nil {
			p.addProblem("on", "%s: events are %s, %s", err, strings.Join(job.NotifyEvents, ", "), notify.NodeEvents)
		}
		if w.SecretFile != "" {
			p.checkAbsolute("secret_file", w.SecretFile)
		}
	}
	if _, err := notify.ParseWebhookPolicy(n.JobWebhooks); err != nil {
		p.addProblem("job_webhooks", "%s", err)
	}
}

// CheckExporter says what is wrong with the URL at which the use of GPUs is read: the page of a DCGM exporter, in
// which {node} stands for the name of a node, or the address of a Prometheus. Empty is right.
func CheckExporter(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(text, "{node}", "node"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fault.New(fault.Invalid, "%.100q is no http:// or https:// URL", text).
			Advise("write the page of a DCGM exporter, http://127.0.0.1:9400/metrics, with {node} for the name of each node: http://{node}:9400/metrics, or the address of a Prometheus that scrapes it: http://prometheus:9090")
	}
	return nil
}

func (p *problems) checkRoom(r *Room) {
	p.checkRange("nodes", r.Nodes, 0, 1000)
	p.checkRange("gpus_per_node", r.GPUsPerNode, -1, 128)
	p.checkRange("cpus", r.CPUs, 0, 65536)
	p.checkRange("nodes_per_leaf", r.NodesPerLeaf, 0, 1000)
	p.checkRange("leaves_per_block", r.LeavesPerBlock, 0, 1000)
	if r.LeavesPerBlock > 0 && r.NodesPerLeaf == 0 {
		p.addProblem("leaves_per_block", "there are no leaves to make blocks of: give nodes_per_leaf too")
	}
	if err := CheckExporter(r.GPUMetrics); err != nil {
		p.addProblem("gpu_metrics", "%s: %s", err, fault.Remedy(err))
	}
	switch {
	case !slices.Contains([]string{"", "own", "shared"}, r.Network):
		p.addProblem("network", "%q is neither own nor shared", r.Network)
	case r.Network == "own" && r.ByAddress:
		p.addProblem("network", "nodes with networks of their own have names: leave by_address out, or say network: shared")
	case r.Network == "own" && r.Nodes == 0:
		p.addProblem("network", "this machine itself has its own network: give nodes, or leave network out")
	}
	depth := 0
	if r.NodesPerLeaf > 0 {
		depth = 1
	}
	if r.LeavesPerBlock > 0 {
		depth = 2
	}
	if n := len(r.Levels); n > 0 && n != depth {
		p.addProblem("levels", "%d names for %d levels: there are leaves with nodes_per_leaf, and blocks of them with leaves_per_block", n, depth)
	}
	for i, name := range r.Levels {
		if !levelName.MatchString(name) || slices.Contains(r.Levels[:i], name) {
			p.addProblem("levels", "%q is no name of a level, or stands there twice: begin with a letter, then letters, digits, - and _", name)
		}
	}
	if len(r.Names) > r.Nodes {
		p.addProblem("names", "%d names for %d virtual nodes", len(r.Names), r.Nodes)
	}
	if r.Nodes == 0 && r.GPUsPerNode > 0 {
		p.addProblem("gpus_per_node", "this machine itself has the GPUs that it has: give nodes: 1 for a virtual node with declared ones")
	}
	for _, n := range append(slices.Clone(r.Features), append(slices.Clone(r.Names), r.GPUType)...) {
		if !isPoolName(n) {
			p.addProblem("room", "%q is no name: letters, digits, - and _", n)
		}
	}
}

// checkPools leaves what a kind of engine makes of its settings to who opens it.
func (p *problems) checkPools(all []Pool) {
	seen := map[string]bool{}
	for _, x := range all {
		switch {
		case !isPoolName(x.Name):
			p.addProblem("pools", "%q is no name: letters, digits, - and _", x.Name)
		case x.Name == job.AnyPool:
			p.addProblem("pools", "no pool can be named %s: --pool any is any pool", x.Name)
		case seen[x.Name]:
			p.addProblem("pools", "%s stands there twice", x.Name)
		case x.Engine == "":
			p.addProblem("pools", "%s: which engine has it? Write engine: slurm or engine: kube", x.Name)
		}
		seen[x.Name] = true
	}
}

func (p *problems) checkViews(c *Config) {
	seen := map[string]bool{}
	defaults := 0
	for _, v := range c.Partitions {
		switch {
		case !isPoolName(v.Name):
			p.addProblem("partitions", "%q is no name: letters, digits, - and _", v.Name)
		case seen[v.Name]:
			p.addProblem("partitions", "%s stands there twice", v.Name)
		}
		seen[v.Name] = true
		if v.Default {
			defaults++
		}
		if _, err := hostlist.Expand(v.Nodes); v.Nodes != "" && err != nil {
			p.addProblem("partitions", "%s: %v", v.Name, err)
		}
		if v.TimeLimit > 0 && v.DefaultTime > v.TimeLimit {
			p.addProblem("partitions", "%s: default_time %s is longer than time_limit %s", v.Name, v.DefaultTime, v.TimeLimit)
		}
	}
	if defaults > 1 {
		p.addProblem("partitions", "%d of them are the default", defaults)
	}
	accounts := map[string]bool{}
	for _, a := range c.Accounts {
		if !isPoolName(a.Name) || accounts[a.Name] {
			p.addProblem("accounts", "%q is no name or stands there twice", a.Name)
		}
		accounts[a.Name] = true
	}
}

func isPoolName(s string) bool {
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
