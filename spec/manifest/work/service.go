package work

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/service"
)

// drain is how long a replica that is to end has for the requests that it has begun.
const drain = 30 * time.Second

// serviceDocument is a Service of the file.
type serviceDocument struct {
	Spec struct {
		Selector        map[string]string `json:"selector"`
		ClusterIP       string            `json:"clusterIP"`
		Type            string            `json:"type"`
		SessionAffinity string            `json:"sessionAffinity"`
		Ports           []struct {
			Name       string          `json:"name"`
			Port       int             `json:"port"`
			TargetPort *podspec.Target `json:"targetPort"`
		} `json:"ports"`
	} `json:"spec"`
}

// setService makes the work a service of n replicas, each of which is one pod p.
func (b *builder) setService(p *podspec.PodTemplate, n int, update service.Update, selector map[string]string) error {
	for key, value := range selector {
		if p.Metadata.Labels[key] != value {
			return b.fail("spec.selector.matchLabels."+key, "give the template the same labels", "the pods of the template have not the label %s=%s", key, value)
		}
	}
	sv := &service.Spec{Replicas: service.Bounds{Min: n, Max: n}, Update: update}
	b.w.Service = sv
	b.w.Job.Requeue = true
	serve := &job.Serve{Drain: drain}
	b.w.Job.Serve = serve
	affinity, err := b.setPorts(p)
	if err != nil {
		return err
	}
	sv.Route.Sticky = affinity
	c := &p.Spec.Containers[0]
	for _, probe := range []struct {
		from *podspec.Probe
		to   **job.Probe
		name string
	}{{c.StartupProbe, &serve.Startup, "startupProbe"}, {c.ReadinessProbe, &serve.Readiness, "readinessProbe"}, {c.LivenessProbe, &serve.Liveness, "livenessProbe"}} {
		if *probe.to, err = b.convertProbe(probe.from, p, probe.name); err != nil {
			return err
		}
	}
	if len(serve.Ports) == 0 { // a worker that takes no requests
		serve.Ports = []job.Port{{Name: "none"}}
		if serve.Readiness == nil {
			serve.Readiness = &job.Probe{Exec: []string{"true"}}
		}
		b.warn("spec.template", "names no port, so nothing can reach it; it is kept alive")
	}
	return b.setScale(n)
}

// addPort adds a port of a container to what the work serves, once.
func (b *builder) addPort(name string, number int) {
	serve := b.w.Job.Serve
	if slices.ContainsFunc(serve.Ports, func(p job.Port) bool { return p.Number == number }) {
		return
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if name == "" || serve.PortNamed(name) != nil || name[0] < 'a' || name[0] > 'z' {
		name = "port-" + strconv.Itoa(number)
	}
	serve.Ports = append(serve.Ports, job.Port{Name: name, Number: number})
}

// setPorts takes the ports of the Services of the file that choose the pod, then those of its first
// container. sticky: a Service sends a client to the same pod again.
func (b *builder) setPorts(p *podspec.PodTemplate) (sticky bool, err error) {
	for i := range b.f.docs {
		d := &b.f.docs[i]
		var doc serviceDocument
		if d.Kind != "Service" {
			continue
		}
		if err := d.decode(&doc); err != nil {
			return false, err
		}
		if !choosesLabels(doc.Spec.Selector, p.Metadata.Labels) {
			continue
		}
		b.useDocument(i)
		sticky = sticky || doc.Spec.SessionAffinity == "ClientIP"
		for k, port := range doc.Spec.Ports {
			target := port.Port
			if port.TargetPort != nil {
				if target = portOf(p, *port.TargetPort); target == 0 {
					return false, d.Fail(fmt.Sprintf("spec.ports[%d].targetPort", k), fmt.Sprintf("no container has a port named %.40q", string(*port.TargetPort)), "name a port of the Deployment's containers, or write its number")
				}
			}
			b.addPort(firstText(port.Name, "http"), target)
		}
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Protocol == "" || port.Protocol == "TCP" {
				b.addPort(port.Name, port.Port)
			}
		}
	}
	return sticky, nil
}

// choosesLabels reports whether a selector chooses what has some labels.
func choosesLabels(selector, labels map[string]string) bool {
	if len(selector) == 0 {
		return false
	}
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// portOf is the number of a port of a pod's containers; 0: there is none of that name.
func portOf(p *podspec.PodTemplate, t podspec.Target) int {
	if n, err := strconv.Atoi(string(t)); err == nil {
		return n
	}
	return portNamed(p, string(t), 0)
}

// joinServices takes the Services of the file that choose pods of the work into its set, by the name under
// which pods of the file find them.
func (b *builder) joinServices() error {
	for i := range b.f.docs {
		d := &b.f.docs[i]
		if d.Kind != "Service" {
			continue
		}
		var doc serviceDocument
		if err := d.decode(&doc); err != nil {
			return err
		}
		for k := range b.w.Set.Roles {
			r := &b.w.Set.Roles[k]
			p, err := r.Pod()
			if err != nil {
				return err
			}
			labels := maps.Clone(p.Metadata.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, r.Labels)
			if !choosesLabels(doc.Spec.Selector, labels) && d.Name != r.Subdomain {
				continue
			}
			b.useDocument(i)
			s := podspec.Service{Name: d.Name, Role: r.Name, Headless: doc.Spec.ClusterIP == "None"}
			for _, port := range doc.Spec.Ports {
				out := podspec.Port{Name: port.Name, Port: port.Port}
				if port.TargetPort != nil {
					out.Target = string(*port.TargetPort)
				}
				s.Ports = append(s.Ports, out)
			}
			at := slices.IndexFunc(b.w.Set.Services, func(o podspec.Service) bool { return o.Name == s.Name })
			switch {
			case at < 0:
				b.w.Set.Services = append(b.w.Set.Services, s)
			case b.w.Set.Services[at].Role != s.Role: // of several roles
				s.Role = ""
				b.w.Set.Services[at] = s
			default:
				b.w.Set.Services[at] = s
			}
		}
	}
	return nil
}

// convertProbe makes a probe of ours of one of Kubernetes. What only a kubelet can ask becomes a look at the
// port.
func (b *builder) convertProbe(from *podspec.Probe, p *podspec.PodTemplate, name string) (*job.Probe, error) {
	if from == nil {
		return nil, nil
	}
	path := "spec.template.spec.containers[0]." + name
	second := func(n, otherwise int32) time.Duration {
		return time.Duration(cmp.Or(n, otherwise)) * time.Second
	}
	out := &job.Probe{
		Delay: second(from.InitialDelaySeconds, 0), Every: second(from.PeriodSeconds, 10), Timeout: second(from.TimeoutSeconds, 1),
		Failures: int(cmp.Or(from.FailureThreshold, 3)), Passes: int(from.SuccessThreshold),
	}
	target := podspec.Target("")
	switch {
	case from.HTTP != nil:
		target, out.HTTP = from.HTTP.Port, firstText(from.HTTP.Path, "/")
		if strings.EqualFold(from.HTTP.Scheme, "HTTPS") || len(from.HTTP.Header) > 0 {
			out.HTTP, out.TCP = "", true
			b.warn(path+".httpGet", "with TLS or headers is asked as written on Kubernetes, and as a connection to the port elsewhere")
		}
	case from.TCP != nil:
		target, out.TCP = from.TCP.Port, true
	case from.GRPC != nil:
		target, out.TCP = podspec.Target(strconv.Itoa(from.GRPC.Port)), true
		b.warn(path+".grpc", "is asked as written on Kubernetes, and as a connection to the port elsewhere")
	case from.Exec != nil && len(from.Exec.Command) > 0:
		out.Exec = from.Exec.Command
		return out, nil
	default:
		return nil, b.fail(path, "write httpGet, tcpSocket, grpc or exec", "the probe asks nothing")
	}
	n := portOf(p, target)
	if n < 1 || n > 65535 {
		return nil, b.fail(path, "name a port of the container, or write its number", "there is no port %.40q", string(target))
	}
	b.addPort("", n)
	for _, port := range b.w.Job.Serve.Ports {
		if port.Number == n {
			out.Port = port.Name
		}
	}
	return out, nil
}

// setScale reads the HorizontalPodAutoscaler of the file that scales the work.
func (b *builder) setScale(n int) error {
	for i := range b.f.docs {
		d := &b.f.docs[i]
		if d.Kind != "HorizontalPodAutoscaler" {
			continue
		}
		var doc struct {
			Spec struct {
				Target struct {
					Kind string `json:"kind"`
					Name string `json:"name"`
				} `json:"scaleTargetRef"`
				Min     *int `json:"minReplicas"`
				Max     int  `json:"maxReplicas"`
				Metrics []struct {
					Type string `json:"type"`
					Pods *struct {
						Metric struct {
							Name string `json:"name"`
						} `json:"metric"`
						Target struct {
							Average podspec.Quantity `json:"averageValue"`
						} `json:"target"`
					} `json:"pods"`
				} `json:"metrics"`
				Behavior struct {
					Down struct {
						Window *int64 `json:"stabilizationWindowSeconds"`
					} `json:"scaleDown"`
				} `json:"behavior"`
			} `json:"spec"`
		}
		if err := d.decode(&doc); err != nil {
			return err
		}
		s := &doc.Spec
		if s.Target.Kind != b.w.Kind || s.Target.Name != b.w.Name {
			continue
		}
		b.useDocument(i)
		if len(s.Metrics) != 1 || s.Metrics[0].Pods == nil {
			return d.Fail("spec.metrics", "a service scales by one number of its pods here, and not by CPU, memory, objects or several metrics",
				"write one metric of type Pods with a number of the pods' own Prometheus page, or requests_per_second or in_flight, which the gateway counts")
		}
		m := s.Metrics[0].Pods
		milli, ok := parseQuantity(m.Target.Average, 1000)
		if !ok || milli == 0 {
			return d.Fail("spec.metrics[0].pods.target.averageValue", "it says no number for each pod", `write averageValue: "8"`)
		}
		least := orOne(s.Min)
		if s.Max < least {
			return d.Fail("spec.maxReplicas", fmt.Sprintf("%d is less than minReplicas, %d", s.Max, least), "write the larger number")
		}
		b.w.Service.Replicas = service.Bounds{Min: least, Max: s.Max}
		b.w.Service.Scale = &service.Scale{Metric: m.Metric.Name, Target: float64(milli) / 1000, Cooldown: service.DefaultCooldown}
		if w := s.Behavior.Down.Window; w != nil {
			b.w.Service.Scale.Cooldown = time.Duration(*w) * time.Second
		}
		return nil
	}
	if n == 0 {
		return b.fail("spec.replicas", "write 1 or more; cox service scale "+b.w.Name+" 0 is for later", "no replica is to run")
	}
	return nil
}

// names of roles in a replica of a LeaderWorkerSet.
const (
	leaderRole = "leader"
	workerRole = "worker"
)

// compileLeaderWorker makes a service of a LeaderWorkerSet (leaderworkerset.x-k8s.io/v1, names and variables of LWS 0.7): a
// replica is a gang of a leader and its workers.
func (f *file) compileLeaderWorker(b *builder) error {
	var doc struct {
		Spec struct {
			Replicas *int `json:"replicas"`
			Template struct {
				Leader        *template `json:"leaderTemplate"`
				Worker        template  `json:"workerTemplate"`
				Size          *int      `json:"size"`
				RestartPolicy string    `json:"restartPolicy"`
			} `json:"leaderWorkerTemplate"`
			Rollout struct {
				Config struct {
					MaxSurge       *podspec.Quantity `json:"maxSurge"`
					MaxUnavailable *podspec.Quantity `json:"maxUnavailable"`
				} `json:"rollingUpdateConfiguration"`
			} `json:"rolloutStrategy"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	t := &doc.Spec.Template
	size, n := orOne(t.Size), orOne(doc.Spec.Replicas)
	leader, path := t.Worker, "spec.leaderWorkerTemplate.workerTemplate"
	if t.Leader != nil {
		leader, path = *t.Leader, "spec.leaderWorkerTemplate.leaderTemplate"
	}
	common := []podspec.EnvVar{
		{Name: "LWS_LEADER_ADDRESS", Value: "{pod:leader:0}"}, {Name: "LWS_GROUP_SIZE", Value: strconv.Itoa(size)},
	}
	labels := func(index string) map[string]string {
		return map[string]string{
			"leaderworkerset.sigs.k8s.io/name": b.w.Name, "leaderworkerset.sigs.k8s.io/group-index": "{task}", "leaderworkerset.sigs.k8s.io/worker-index": index,
		}
	}
	role := podspec.Role{
		Name: leaderRole, Replicas: 1, PodName: b.w.Name + "-{task}", Subdomain: b.w.Name, Template: leader.RawMessage, Labels: labels("0"),
		Env: append(slices.Clone(common), podspec.EnvVar{Name: "LWS_WORKER_INDEX", Value: "0"}), Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/size": strconv.Itoa(size)},
	}
	role.Labels["role"] = leaderRole
	p, err := b.addRole(role, path)
	if err != nil {
		return err
	}
	if size > 1 {
		w := podspec.Role{
			Name: workerRole, Replicas: size - 1, PodName: b.w.Name + "-{task}-{i+1}", Subdomain: b.w.Name, Template: t.Worker.RawMessage, Labels: labels("{i+1}"),
			Env: append(slices.Clone(common), podspec.EnvVar{Name: "LWS_WORKER_INDEX", Value: "{i+1}"}), Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/size": strconv.Itoa(size)},
		}
		if _, err := b.addRole(w, "spec.leaderWorkerTemplate.workerTemplate"); err != nil {
			return err
		}
	}
	b.addService(b.w.Name, "")
	update := service.Update{Unavailable: 1, Step: service.DefaultStep, Timeout: service.DefaultTimeout}
	if q := doc.Spec.Rollout.Config.MaxSurge; q != nil {
		if update.Surge, err = b.partOf(q, n, true, "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"); err != nil {
			return err
		}
	}
	if q := doc.Spec.Rollout.Config.MaxUnavailable; q != nil {
		if update.Unavailable, err = b.partOf(q, n, false, "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"); err != nil {
			return err
		}
	}
	if update.Surge == 0 && update.Unavailable == 0 {
		update.Unavailable = 1
	}
	return b.setService(p, n, update, nil)
}
