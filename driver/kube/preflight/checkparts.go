package preflight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// quotaUsage is a quota with what is used of it: "pods 3 of 50".
func quotaUsage(q *corev1.ResourceQuota) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		hard, now := q.Status.Hard[name], q.Status.Used[name]
		out = append(out, fmt.Sprintf("%s %s of %s", name, now.String(), hard.String()))
	}
	if len(out) == 0 {
		return "the cluster has not counted it yet"
	}
	return strings.Join(out, ", ")
}

// limitRangeText is a limit range in a line: "Container: at most cpu=4".
func limitRangeText(r *corev1.LimitRange) string {
	var out []string
	for _, i := range r.Spec.Limits {
		for _, x := range []struct {
			what string
			of   corev1.ResourceList
		}{{"at least", i.Min}, {"at most", i.Max}, {"if nothing is said", i.Default}} {
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(x.of)) {
				q := x.of[name]
				parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
			}
			if len(parts) > 0 {
				out = append(out, fmt.Sprintf("%s: %s %s", i.Type, x.what, strings.Join(parts, ",")))
			}
		}
	}
	return strings.Join(out, "; ")
}

// checkNodes is the nodes, their devices and where they lie.
func (l *scan) checkNodes(ctx context.Context) error {
	all, err := l.inventory.Refresh(ctx)
	if err != nil {
		l.addFailure("nodes", err)
		return nil
	}
	if len(all) == 0 {
		l.addFinding("nodes", engine.Missing, "kubectl get nodes --show-labels shows what there is; node_selector chooses", "no node is the pool's")
		return nil
	}
	l.checkNodeStates(all)
	l.userGroups(all)
	l.checkGPUTypes(all)
	if _, err := l.inventory.TopologyLabels(ctx); err != nil {
		l.addFailure("topology", err)
	}
	l.checkTopology(all)
	l.checkForeignUse(all)
	l.checkDRADevices(ctx, all)
	return nil
}

// checkNodeStates are nodes that take no work.
func (l *scan) checkNodeStates(all []inventory.Machine) {
	up, off := 0, map[string][]string{}
	for i := range all {
		if n := &all[i].Node; n.State == fleet.Up {
			up++
		} else {
			off[strings.ReplaceAll(n.Why, n.Name, "NODE")] = append(off[strings.ReplaceAll(n.Why, n.Name, "NODE")], n.Name)
		}
	}
	state, mend := engine.Found, ""
	if up == 0 {
		state, mend = engine.Missing, "kubectl describe nodes"
	}
	l.addFinding("nodes", state, mend, "%d of %d take work", up, len(all))
	for _, why := range slices.Sorted(maps.Keys(off)) {
		l.addFinding("nodes", engine.Warning, "kubectl describe node "+off[why][0], "%s: %s", hostlist.Compress(off[why]), why)
	}
}

// userGroups are those that an image's /etc/group has the job's user in.
func (l *scan) userGroups(all []inventory.Machine) {
	var without []string
	for i := range all {
		if !all[i].Strict {
			without = append(without, all[i].Node.Name)
		}
	}
	switch {
	case l.terms.AsImage: // then they are the image's to say
	case len(without) == 0:
		l.addFinding("groups", engine.Found, "", "pods are in no group that their image would have them in")
	case len(l.terms.Paths) > 0:
		const mend = "containerd 2.0, CRI-O 1.31 or later, and Kubernetes 1.33; until then let no images in but those that you know"
		l.addFinding("groups", engine.Warning, mend, "%s: an image's /etc/group can have the job's user in more groups, for the files of paths too (supplementalGroupsPolicy is Merge there)", hostlist.Compress(without))
	default:
		l.addFinding("groups", engine.Found, "", "%d of %d nodes keep pods out of groups that their image would have them in", len(all)-len(without), len(all))
	}
}

// checkGPUTypes are the devices by type.
func (l *scan) checkGPUTypes(all []inventory.Machine) {
	counts, on, ill, sum, claimed, notes := map[string]int{}, 0, 0, 0, 0, map[string]int{}
	for i := range all {
		m := &all[i]
		for k, d := range m.Node.Devices {
			if m.Ask[k] == "" {
				claimed++
			}
			kind := d.Type
			if kind == "" {
				kind = "gpu of a type that no label says"
			}
			counts[strings.TrimSuffix(kind+" "+d.Profile, " ")]++
			sum++
		}
		if len(m.Node.Devices) > 0 {
			on++
		}
		ill += m.Ill
		for _, n := range m.Notes {
			notes[strings.TrimPrefix(n, m.Node.Name+": ")]++
		}
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d × %s", counts[name], name))
	}
	if len(words) == 0 {
		l.addFinding("devices", engine.Warning, "install the vendor's device plugin (NVIDIA's GPU operator has it), or set gpu_resource", "no node has GPUs: jobs that ask for them never start here")
	} else {
		l.addFinding("devices", engine.Found, "", "%s on %d of %d nodes; %s", strings.Join(words, ", "), on, len(all), deviceChooser(&l.terms, claimed, sum-claimed))
	}
	if !l.terms.Placed && len(l.terms.Classes) == 0 {
		if _, err := inventory.WholeGPUOf(&l.terms, all); err != nil {
			l.addFinding("devices", engine.Warning, fault.Remedy(err), "jobs that ask for a GPU are refused: %v", err)
		}
	}
	if ill > 0 {
		l.addFinding("devices", engine.Warning, "kubectl describe nodes, and the log of the device plugin", "%d are not healthy and not given to anybody", ill)
	}
	for _, n := range slices.Sorted(maps.Keys(notes)) {
		l.addFinding("devices", engine.Warning, "jobs ask for them by their profile; whole GPUs need a node without sharing", "on %d nodes %s", notes[n], n)
	}
}

func (l *scan) checkTopology(all []inventory.Machine) {
	leaves, without := map[string]bool{}, 0
	for i := range all {
		if p := all[i].Node.Path; len(p) > 0 {
			leaves[strings.Join(p, "/")] = true
		} else {
			without++
		}
	}
	mend := "label the nodes: topology.kubernetes.io/zone, or topograph's network.topology.nvidia.com/…; other labels by the setting topology"
	switch {
	case len(leaves) == 0:
		l.addFinding("topology", engine.Warning, mend, "where nodes lie is not known: gangs are placed as if all were near each other")
	case without > 0:
		l.addFinding("topology", engine.Warning, mend, "%d places, and %d nodes in none", len(leaves), without)
	default:
		l.addFinding("topology", engine.Found, "", "%d places", len(leaves))
	}
}

// checkForeignUse is what pods that are not ours hold.
func (l *scan) checkForeignUse(all []inventory.Machine) {
	var u inventory.Use
	gpus := 0
	for i := range all {
		o := all[i].Others
		u.Pods, u.Daemons, u.Take = u.Pods+o.Pods, u.Daemons+o.Daemons, u.Take.Add(o.Take)
		for _, n := range o.Devices {
			gpus += n
		}
	}
	if u.Pods > 0 {
		l.addFinding("others", engine.Found, "", "%d pods, %d of them of DaemonSets, hold %s CPUs, %s of memory and %d GPUs", u.Pods, u.Daemons, amount.FormatCPU(u.Take.CPU), amount.FormatBytes(u.Take.Memory), gpus)
	}
}

func (l *scan) checkImages(context.Context) error {
	t := &l.terms
	if t.AgentImage == "" {
		l.addFinding("agent image", engine.Missing, "scripts/image.sh makes it, as coxswain.sh/agent:latest: give it to the nodes or to a registry, and name it by --agent-image", "nothing can be started: no image brings cox-pod into the pods")
	} else {
		l.addFinding("agent image", engine.Found, "", "%s; whether the nodes can pull it, a first job shows", t.AgentImage)
	}
	if t.Image == "" {
		l.addFinding("image", engine.Warning, "--image IMAGE, for jobs that name none", "without a default, jobs that name no image (--container-image, image: in the native form) are refused")
	} else {
		l.addFinding("image", engine.Found, "", "%s, for jobs that name none; whether the nodes can pull it, a first job shows", t.Image)
	}
	return nil
}

// checkNamedObjects is what the settings name and somebody has made.
func (l *scan) checkNamedObjects(ctx context.Context) error {
	t := &l.terms
	if t.PriorityClass != "" && l.checkExists(ctx, "priority class", cluster.PriorityClasses, "", t.PriorityClass, "kubectl create priorityclass "+t.PriorityClass+" --value=0", nil) {
		l.addFinding("priority class", engine.Found, "", "%s", t.PriorityClass)
	}
	if len(t.Paths) == 0 && t.WorkDir == "" {
		const mend = "--set workdir=upload, and cox submit --upload; or paths, whose volumes have them; --set workdir=empty, if jobs need none"
		l.addFinding("workdir", engine.Warning, mend, "jobs find none of the files beside their script: there are no paths, and an empty directory stands in place of theirs")
	}
	for _, p := range t.Paths {
		switch p.Volume.Kind {
		case settings.OfImage, settings.Empty:
			l.addFinding("paths", engine.Found, "", "%s is %s", p.Prefix, p.Volume)
		case settings.Fresh:
			l.addFinding("paths", engine.Found, "", "%s is %s; whether the storage class makes volumes, a first job shows", p.Prefix, p.Volume)
		case settings.Claim: // of each namespace
		default:
			l.addFinding("paths", engine.Found, "", "%s is %s; whether the nodes have it, a first job shows", p.Prefix, p.Volume)
		}
	}
	for _, ns := range t.Spaces() {
		l.namedIn(ctx, ns)
	}
	return nil
}

// checkExists reads an object that the settings name, and says if it is not there.
func (l *scan) checkExists(ctx context.Context, what string, r cluster.Resource, ns, name, mend string, into any) bool {
	err := l.cluster.Get(ctx, r, ns, name, into)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		where := ""
		if len(l.terms.Spaces()) > 1 && ns != "" {
			where = " in namespace " + ns
		}
		if r == cluster.PersistentVolumeClaims {
			name = "claim " + name
		}
		l.addFinding(what, engine.Missing, mend, "there is no %s%s", name, where)
	case err != nil:
		l.addFailure(what, err)
	}
	return err == nil
}

// namedIn is what has to be in each namespace.
func (l *scan) namedIn(ctx context.Context, ns string) {
	where := ""
	if len(l.terms.Spaces()) > 1 {
		where = " in namespace " + ns
	}
	for _, s := range l.terms.PullSecrets {
		if l.checkExists(ctx, "pull secret", cluster.Secrets, ns, s, fmt.Sprintf("kubectl create secret docker-registry %s --namespace %s --docker-server=… --docker-username=… --docker-password=…", s, ns), nil) {
			l.addFinding("pull secret", engine.Found, "", "%s%s", s, where)
		}
	}
	for _, p := range l.terms.Paths {
		var c corev1.PersistentVolumeClaim
		if p.Volume.Kind == settings.Claim && l.checkExists(ctx, "paths", cluster.PersistentVolumeClaims, ns, p.Volume.Name, "make a PersistentVolumeClaim "+p.Volume.Name+" in namespace "+ns+", with ReadWriteMany where jobs have several nodes", &c) {
			l.checkVolumeClaim(p, &c)
		}
	}
}

// checkVolumeClaim is what a claim of the paths is, and which nodes can have it.
func (l *scan) checkVolumeClaim(p settings.Path, c *corev1.PersistentVolumeClaim) {
	ties, _ := l.inventory.VolumesOf(c.Namespace)
	t := inventory.VolumeTopology{SingleUse: inventory.SingleUseMode(c.Spec.AccessModes)}
	if i := slices.IndexFunc(ties, func(t inventory.VolumeTopology) bool { return t.Claim == c.Name }); i >= 0 {
		t = ties[i]
	}
	describe := "kubectl describe pvc " + c.Name + " --namespace " + c.Namespace
	only, can := l.claimReach(&t)
	switch {
	case c.Status.Phase == corev1.ClaimLost:
		l.addFinding("paths", engine.Missing, describe, "%s: the volume of claim %s is lost", p.Prefix, c.Name)
	case only != "" && can == 0:
		l.addFinding("paths", engine.Missing, "a claim whose volume the pool's nodes can have; or node_selector, for those that can have this one", "%s: claim %s%s", p.Prefix, c.Name, only)
	case t.ByHand:
		l.addFinding("paths", engine.Warning, "write the volume's name into the claim (volumeName); or placed=false", "%s: claim %s has no volume, and nobody chooses one: %s has those that were made by hand", p.Prefix, c.Name, t.Volume)
	case t.SingleUse == corev1.ReadWriteOncePod:
		l.addFinding("paths", engine.Warning, "a claim with ReadWriteMany", "%s: claim %s is for one pod at a time: jobs that may be on several nodes are refused, and all others wait for each other%s", p.Prefix, c.Name, only)
	case t.SingleUse != "":
		l.addFinding("paths", engine.Warning, "a claim with ReadWriteMany", "%s: claim %s is for one node at a time: jobs that may be on several are refused, and others wait while one has it elsewhere%s", p.Prefix, c.Name, only)
	default:
		l.addFinding("paths", engine.Found, "", "%s is claim %s, %s%s", p.Prefix, c.Name, strings.ToLower(string(c.Status.Phase)), only)
	}
}

// claimReach says how many nodes of the last look can have a claim; empty: nothing is known that keeps
// any from it.
func (l *scan) claimReach(t *inventory.VolumeTopology) (text string, can int) {
	if t.Region.IsUnrestricted() || !l.terms.Placed {
		return "", 0
	}
	all := l.inventory.KnownNodes()
	var names []string
	for i := range all {
		if all[i].Far[t.Key()] == "" {
			names = append(names, all[i].Node.Name)
		}
	}
	return fmt.Sprintf("; %s is for nodes with %s: %d of %d, %s", t.Volume, t.Region, len(names), len(all), cmp.Or(hostlist.Compress(names), "none")), len(names)
}
