package work

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// Ports of a Ray head.
const (
	rayPort       = 6379
	rayDashboard  = 8265
	rayHead       = "head"
	raySubmitter  = "submitter"
	rayUlimitLine = "ulimit -n 65536; "
)

// rayGroup is the head or a group of workers.
type rayGroup struct {
	GroupName   string            `json:"groupName"`
	Replicas    *int              `json:"replicas"`
	MinReplicas *int              `json:"minReplicas"`
	NumOfHosts  *int              `json:"numOfHosts"`
	Params      map[string]string `json:"rayStartParams"`
	Template    template          `json:"template"`
}

// rayCluster is the spec of a RayCluster.
type rayCluster struct {
	Head    rayGroup   `json:"headGroupSpec"`
	Workers []rayGroup `json:"workerGroupSpecs"`
	Scaling bool       `json:"enableInTreeAutoscaling"`
	Suspend bool       `json:"suspend"`
}

// compileRayCluster makes a gang of a RayCluster (ray.io/v1, command and variables as KubeRay 1.4 makes them). It runs
// until somebody ends it, or to its time limit.
func (f *file) compileRayCluster(b *builder) error {
	var doc struct {
		Spec rayCluster `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	b.w.Job.Held = doc.Spec.Suspend
	return b.addRayCluster(&doc.Spec, "spec")
}

// compileRayJob makes a gang of a RayJob: the cluster, and a pod beside it that submits the entry point and
// ends with it.
func (f *file) compileRayJob(b *builder) error {
	var doc struct {
		Spec struct {
			Entrypoint            string            `json:"entrypoint"`
			RuntimeEnv            string            `json:"runtimeEnvYAML"`
			JobID                 string            `json:"jobId"`
			BackoffLimit          *int              `json:"backoffLimit"`
			ActiveDeadlineSeconds *int64            `json:"activeDeadlineSeconds"`
			Suspend               bool              `json:"suspend"`
			Metadata              map[string]string `json:"metadata"`
			CPUs                  float64           `json:"entrypointNumCpus"`
			GPUs                  float64           `json:"entrypointNumGpus"`
			Submitter             *template         `json:"submitterPodTemplate"`
			Cluster               *rayCluster       `json:"rayClusterSpec"`
			Selector              map[string]string `json:"clusterSelector"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	s := &doc.Spec
	switch {
	case s.Cluster == nil:
		return b.fail("spec", "write rayClusterSpec: the cluster starts and ends with the job", "the RayJob has no cluster of its own")
	case s.Entrypoint == "":
		return b.fail("spec.entrypoint", "write the command that the cluster is to run", "the RayJob has no entry point")
	case s.RuntimeEnv != "":
		return b.fail("spec.runtimeEnvYAML", "put what the program needs into the image, or say --runtime-env in a command of your own", "an environment that is made at run time is not read")
	}
	if err := b.addRayCluster(s.Cluster, "spec.rayClusterSpec"); err != nil {
		return err
	}
	line := "ray job submit --address=http://{head}:" + strconv.Itoa(rayDashboard)
	if s.JobID != "" {
		line += " --submission-id=" + s.JobID
	}
	if s.CPUs > 0 {
		line += fmt.Sprintf(" --entrypoint-num-cpus=%g", s.CPUs)
	}
	if s.GPUs > 0 {
		line += fmt.Sprintf(" --entrypoint-num-gpus=%g", s.GPUs)
	}
	// The head needs a while; ray job submit follows the log and ends as the entry point does.
	line = "until ray health-check --address \"$RAY_HEAD_ADDRESS\" >/dev/null 2>&1; do sleep 1; done; exec " + strings.ReplaceAll(line, "{head}", "$RAY_HEAD") + " -- " + s.Entrypoint
	tpl, path := s.Cluster.Head.Template, "spec.rayClusterSpec.headGroupSpec.template"
	if s.Submitter != nil {
		tpl, path = *s.Submitter, "spec.submitterPodTemplate"
	}
	edited, err := tpl.edit(func(spec map[string]any) error {
		c, err := mainContainer(spec)
		if err != nil {
			return err
		}
		if s.Submitter == nil {
			for _, key := range []string{"resources", "ports", "lifecycle", "readinessProbe", "livenessProbe", "startupProbe"} {
				delete(c, key)
			}
			c["resources"] = map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "200Mi"}, "limits": map[string]any{"cpu": "1", "memory": "1Gi"}}
			spec["containers"] = []any{c}
		}
		if s.Submitter == nil || c["command"] == nil {
			c["command"], c["args"] = []any{"/bin/bash", "-c", "--"}, []any{line}
		}
		return nil
	})
	if err != nil {
		return b.fail(path, "", "%v", err)
	}
	role := podspec.Role{Name: raySubmitter, Replicas: 1, PodName: b.w.Name + "-submitter", Template: edited.RawMessage, Env: rayEnv()}
	if _, err := b.addRole(role, path); err != nil {
		return err
	}
	b.w.Set.Complete = &podspec.Complete{Roles: []string{raySubmitter}}
	b.setLimit(s.ActiveDeadlineSeconds)
	if s.BackoffLimit != nil {
		b.setRetries(*s.BackoffLimit)
	}
	b.w.Job.Held = s.Suspend
	return nil
}

func rayEnv() []podspec.EnvVar {
	return []podspec.EnvVar{
		{Name: "RAY_HEAD", Value: "{pod:head:0}"},
		{Name: "RAY_HEAD_ADDRESS", Value: "{pod:head:0}:" + strconv.Itoa(rayPort)},
		{Name: "FQ_RAY_IP", Value: "{pod:head:0}"},
		{Name: "RAY_IP", Value: "{pod:head:0}"},
		{Name: "RAY_PORT", Value: strconv.Itoa(rayPort)},
		{Name: "RAY_ADDRESS", Value: "{pod:head:0}:" + strconv.Itoa(rayPort)},
		{Name: "RAY_DASHBOARD_ADDRESS", Value: "{pod:head:0}:" + strconv.Itoa(rayDashboard)},
		{Name: "RAY_USAGE_STATS_ENABLED", Value: "0"},
	}
}

// addRayCluster adds the head and the workers.
func (b *builder) addRayCluster(s *rayCluster, path string) error {
	if s.Scaling {
		return b.fail(path+".enableInTreeAutoscaling", "leave it out: the cluster starts with all of its workers", "Ray does not add and remove pods of a gang")
	}
	add := func(g *rayGroup, name, pod string, n int, path string) error {
		t, err := g.Template.edit(func(spec map[string]any) error { return startRay(spec, g.Params, name == rayHead) })
		if err != nil {
			return b.fail(path+".template", "", "%v", err)
		}
		kind := "worker"
		if name == rayHead {
			kind = rayHead
		}
		role := podspec.Role{
			Name: name, Replicas: n, PodName: pod, Template: t.RawMessage, Env: rayEnv(),
			Labels: map[string]string{"ray.io/cluster": b.w.Name, "ray.io/node-type": kind, "ray.io/group": name, "ray.io/is-ray-node": "yes"},
		}
		p, err := b.addRole(role, path+".template")
		if err == nil {
			b.setLimit(templateLimit(p))
		}
		return err
	}
	if err := add(&s.Head, rayHead, b.w.Name+"-head", 1, path+".headGroupSpec"); err != nil {
		return err
	}
	b.addService(b.w.Name+"-head-svc", rayHead)
	for k := range s.Workers {
		g := &s.Workers[k]
		at := path + ".workerGroupSpecs[" + strconv.Itoa(k) + "]"
		name := firstText(g.GroupName, "worker"+strconv.Itoa(k))
		if name == rayHead || name == raySubmitter {
			return b.fail(at+".groupName", "rename the group", "the name %s is that of another role", name)
		}
		if len(b.w.Set.Roles) >= maxRoles {
			return b.fail(at, "use fewer, larger groups", "it has more than %d groups of workers", maxRoles)
		}
		n := orNumber(g.Replicas, orNumber(g.MinReplicas, 1)) * orOne(g.NumOfHosts)
		if n == 0 {
			b.warn(at+".replicas", "the group %s has no pods, and none are added later", name)
			continue
		}
		if err := add(g, name, b.w.Name+"-"+name+"-{i}", n, at); err != nil {
			return err
		}
	}
	return nil
}

// mainContainer is the first container of a pod spec.
func mainContainer(spec map[string]any) (map[string]any, error) {
	all, _ := spec["containers"].([]any)
	if len(all) == 0 {
		return nil, fmt.Errorf("the pod template has no container")
	}
	c, ok := all[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the first container is no mapping")
	}
	return c, nil
}

// startRay makes the first container start Ray, as KubeRay does, after its own command if it has one.
func startRay(spec map[string]any, params map[string]string, head bool) error {
	c, err := mainContainer(spec)
	if err != nil {
		return err
	}
	p := maps.Clone(params)
	if p == nil {
		p = map[string]string{}
	}
	p["block"] = "true"
	line := rayUlimitLine + "exec ray start"
	if head {
		line += " --head"
		for key, value := range map[string]string{"port": strconv.Itoa(rayPort), "dashboard-host": "0.0.0.0", "dashboard-port": strconv.Itoa(rayDashboard)} {
			if _, ok := p[key]; !ok {
				p[key] = value
			}
		}
	} else {
		p["address"] = "$RAY_HEAD_ADDRESS"
		line = "until ray health-check --address \"$RAY_HEAD_ADDRESS\" >/dev/null 2>&1; do sleep 1; done; " + line
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		switch value := p[key]; value {
		case "true":
			line += " --" + key
		case "false", "":
		default:
			line += " --" + key + "=" + value
		}
	}
	if own := textsOf(c["command"]); len(own) > 0 {
		return fmt.Errorf("the first container has a command of its own, and Ray is started in its place: leave command and args out")
	}
	c["command"], c["args"] = []any{"/bin/bash", "-c", "--"}, []any{line}
	return nil
}

func textsOf(v any) (out []string) {
	all, _ := v.([]any)
	for _, w := range all {
		if s, ok := w.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
