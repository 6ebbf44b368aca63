package local

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Launch takes an attempt: it is in the log when it returns.
func (e *Engine) Launch(ctx context.Context, l *engine.Launch) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	file, err := e.planLaunch(ctx, l)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && fault.KindOf(err) != fault.Unavailable { // a launch that got no further
			e.removeSecrets(file)
		}
	}()
	if e.isNewAttempt(l.Ref) && l.Adds == nil {
		if err := e.makeUpload(l); err != nil {
			return err
		}
		if err := e.makeCheckpointDir(l, file); err != nil {
			return engine.Unwritten(l.Ref, err)
		}
		if err := e.makeSecrets(l, file); err != nil {
			return engine.Unwritten(l.Ref, err)
		}
	}
	if len(e.cfg.NUMA) > 1 {
		e.binding.Lock()
		defer e.binding.Unlock()
		file.Bind = e.bindCPUs(l.Claims, file.Nodes)
	}
	whole, err := json.Marshal(file)
	if err != nil {
		return fault.New(fault.Invalid, "launch of attempt %s: %w", l.Ref, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return fault.New(fault.Unavailable, "the local engine is closed")
	}
	if g := e.gangs[l.Ref]; g != nil {
		if g.launch.Digest != file.Digest {
			return fault.New(fault.Conflict, "attempt %s was launched before, as something else", l.Ref)
		}
		return nil
	}
	if e.log.Fenced(l.Ref) {
		return fault.New(fault.Conflict, "attempt %s was given up or forgotten", l.Ref)
	}
	if err := e.Refuse(l.Ref, file.Nodes); err != nil {
		return err
	}
	if err := e.log.Launch(l.Ref, whole); err != nil {
		return engine.Unwritten(l.Ref, err)
	}
	g := e.newGang(file, whole)
	e.gangs[l.Ref] = g
	g.publishState()
	e.wg.Go(g.runGang)
	return nil
}

// isNewAttempt reports whether an attempt is one of which nothing was heard yet.
func (e *Engine) isNewAttempt(ref engine.Ref) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gangs[ref] == nil && !e.log.Fenced(ref)
}

// planLaunch checks a launch and makes what is logged of it.
func (e *Engine) planLaunch(ctx context.Context, l *engine.Launch) (*attempt.Launch, error) {
	refuse := func(format string, args ...any) (*attempt.Launch, error) {
		return nil, fault.New(fault.Invalid, "launch of attempt %s: "+format, append([]any{l.Ref}, args...)...)
	}
	if l.Job == nil || l.Job.Spec == nil || len(l.Claims) == 0 {
		return refuse("a job and claims are needed")
	}
	digest, pods := kit.LaunchDigest(l), l.Job.Spec.Program.Kind == job.Pods
	l, err := asBatch(l)
	if err != nil {
		return nil, err
	}
	spec := l.Job.Spec
	switch {
	case spec.Program.Kind == job.Batch && len(l.Script) == 0:
		return refuse("the script is empty")
	case spec.Program.Kind == job.Direct && len(spec.Program.Args) == 0:
		return refuse("no command is given")
	case !spec.Program.Kind.Known():
		return refuse("%q is no kind of program", spec.Program.Kind)
	case spec.Program.Kind != job.Direct && spec.Elastic():
		return refuse("only a command can be elastic: nothing would run on what is added")
	case !filepath.IsAbs(spec.WorkDir):
		return refuse("the working directory %q is not absolute", spec.WorkDir)
	case slices.ContainsFunc(l.Env, func(v string) bool { return strings.ContainsRune(v, 0) }):
		return refuse("the environment holds a NUL byte")
	}
	who, err := e.users.identityOf(spec.Owner)
	if err != nil {
		return nil, err
	}
	nodes, err := e.claimedNodes(l.Claims)
	if err != nil {
		return refuse("%w", err)
	}
	file := &attempt.Launch{
		Ref: l.Ref, Digest: digest, Job: l.Job, Claims: l.Claims, Nodes: nodes, Script: l.Script, Env: l.Env, Grace: l.Grace,
		Naming: e.cfg.Naming, Root: e.cfg.Root, Drawn: e.identity, Groups: e.base, BootID: e.boot, Orphan: 10 * time.Second, Tether: e.cfg.Tether, Stuck: e.cfg.Stuck,
		User: who, Umask: jobUmask(l.Env, who),
		Hooks: attempt.Hooks{Prolog: e.cfg.Prolog, Epilog: e.cfg.Epilog}, Processes: int64(e.cfg.Processes), Adds: l.Adds,
		Devices: e.lockerFor(l.Claims, nodes), Network: e.cfg.Network.Prefix, Machine: e.cfg.Network.Machine.Address,
	}
	e.placeUpload(l, file)
	if file.Hooks != (attempt.Hooks{}) {
		file.Hooks.Timeout = e.cfg.HookTimeout
	}
	if err := e.planContainers(ctx, file, pods); err != nil {
		return nil, err
	}
	if e.cfg.Naming == NamedByAddr {
		return file, nil
	}
	if at := e.cfg.Network.Machine; at.Address != "" {
		file.Hosts = append(file.Hosts, at)
	}
	for _, n := range e.cfg.Nodes {
		file.Hosts = append(file.Hosts, attempt.Host{Name: n.Name, Address: n.Address})
	}
	return file, nil
}

// claimedNodes returns the distinct nodes of claims, in their order.
func (e *Engine) claimedNodes(claims []fleet.Claim) ([]fleet.Node, error) {
	var nodes []fleet.Node
	for _, c := range claims {
		if slices.ContainsFunc(nodes, func(n fleet.Node) bool { return n.Name == c.Node }) {
			continue
		}
		i := slices.IndexFunc(e.cfg.Nodes, func(n fleet.Node) bool { return n.Name == c.Node })
		if i < 0 || c.Node == "" || strings.ContainsAny(c.Node, "/\x00") || strings.HasPrefix(c.Node, ".") {
			return nil, fmt.Errorf("there is no node %q here", c.Node)
		}
		nodes = append(nodes, e.cfg.Nodes[i])
	}
	return nodes, nil
}
