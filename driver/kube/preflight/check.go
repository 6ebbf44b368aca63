package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	authn "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// scan is a look at a cluster: what was found so far.
type scan struct {
	inventory *inventory.Inventory
	cluster   *cluster.Cluster
	terms     settings.Terms

	found  []engine.Finding
	served cluster.Served
	gangs  []gang.Gang
	who    string // as ParseSubject reads it; empty: not known
	groups []string

	granted bool // the rights were looked at, and none is missing
}

func (l *scan) addFinding(what string, s engine.FindingState, mend, format string, args ...any) {
	l.found = append(l.found, engine.Finding{What: what, State: s, Text: fmt.Sprintf(format, args...), Mend: mend})
}

// addFailure is a finding of what could not be looked at. A right that is missing is said by the
// rights; here it says what is not known for it.
func (l *scan) addFailure(what string, err error) {
	state, mend := engine.Missing, fault.Remedy(err)
	if fault.KindOf(err) == fault.Permission {
		if state = engine.Warning; !l.granted {
			mend = l.grantCommand()
		}
	}
	l.addFinding(what, state, mend, "not looked at: %v", err)
}

// Check looks at a cluster and at what a pool of these terms may do there, before it is added. It
// makes nothing that stays. inv is the pool's own inventory; nil: Check makes one.
func Check(ctx context.Context, c *cluster.Cluster, t settings.Terms, inv *inventory.Inventory) ([]engine.Finding, error) {
	t.Namespace = cmp.Or(t.Namespace, c.Namespace())
	if inv == nil {
		inv = inventory.New(c, t, "")
	}
	l := scan{inventory: inv, cluster: c, terms: t}
	return l.check(ctx)
}

// check makes all findings.
func (l *scan) check(ctx context.Context) ([]engine.Finding, error) {
	v, err := l.cluster.Version(ctx)
	if err != nil {
		return nil, err
	}
	l.checkVersion(v.Major, v.Minor, v.GitVersion)
	if l.served, err = l.cluster.Served(ctx); err != nil {
		return l.found, err
	}
	l.gangs = gang.Served(l.served)
	for _, f := range []func(context.Context) error{
		l.checkIdentity, l.checkNamespaces, l.checkRights, l.checkQuotas, l.checkGang, l.checkPodNames, l.checkNodes, l.checkReservation, l.checkImages, l.checkNamedObjects, l.checkAllowances, l.checkPodAddresses,
	} {
		if err := f(ctx); ctx.Err() != nil {
			return l.found, fault.New(fault.Unavailable, "the look was not ended: %w", context.Cause(ctx))
		} else if err != nil {
			return l.found, err
		}
	}
	return l.found, nil
}

// Versions of Kubernetes, by the minor number.
const (
	oldest = 27 // the first whose scheduling gates are on
	first  = 30 // the first whose gates and admission policies are stable
	newest = 37 // the last that is known
)

func (l *scan) checkVersion(major, minor, full string) {
	n, err := strconv.Atoi(strings.TrimRight(minor, "+abcdefghijklmnopqrstuvwxyz-"))
	switch {
	case err != nil || major != "1":
		l.addFinding("version", engine.Warning, "cox verify "+l.terms.Pool+" shows whether it works", "Kubernetes %s: this version is not known", full)
	case n < oldest:
		l.addFinding("version", engine.Missing, "upgrade the cluster to 1.30 or later", "Kubernetes %s has no scheduling gates, by which no pod begins before all are there", full)
	case n < first:
		l.addFinding("version", engine.Warning, "upgrade the cluster to 1.30 or later", "Kubernetes %s is older than 1.30, the first whose scheduling gates and admission policies are stable", full)
	case n > newest:
		l.addFinding("version", engine.Warning, "cox verify "+l.terms.Pool+" shows whether it works", "Kubernetes %s is newer than 1.%d, the last that is known", full, newest)
	default:
		l.addFinding("version", engine.Found, "", "Kubernetes %s", full)
	}
}

// checkIdentity is who the API server takes us for.
func (l *scan) checkIdentity(ctx context.Context) error {
	review := authn.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	at := cluster.Resource{Group: "authentication.k8s.io", Version: "v1", Name: "selfsubjectreviews", Global: true}
	if err := l.cluster.Create(ctx, at, "", &review, false, &review); err != nil {
		l.addFinding("identity", engine.Warning, fault.Remedy(err), "the API server does not say who asks: %v", err)
		return nil
	}
	u := review.Status.UserInfo
	l.who, l.groups = "user:"+u.Username, u.Groups
	l.addFinding("identity", engine.Found, "", "%s, of %s", u.Username, strings.Join(u.Groups, ", "))
	return nil
}

// checkNamespaces is whether those are there that the settings name.
func (l *scan) checkNamespaces(ctx context.Context) error {
	for _, name := range l.terms.RequiredNamespaces() {
		l.namespaceOf(ctx, name)
	}
	return nil
}

func (l *scan) namespaceOf(ctx context.Context, name string) {
	var ns corev1.Namespace
	switch err := l.cluster.Get(ctx, cluster.Namespaces, "", name, &ns); fault.KindOf(err) {
	case fault.NotFound:
		l.addFinding("namespace", engine.Missing, "kubectl create namespace "+name, "there is no namespace %s%s", name, l.accountsIn(name))
		return
	default:
		if err != nil {
			l.addFailure("namespace", err)
			return
		}
	}
	if ns.DeletionTimestamp != nil {
		l.addFinding("namespace", engine.Missing, "wait until it is gone, then kubectl create namespace "+name, "%s is being deleted", name)
		return
	}
	l.addFinding("namespace", engine.Found, "", "%s%s", name, l.accountsIn(name))
	if !slices.Contains(l.terms.Spaces(), name) {
		return
	}
	l.podSecurity(name, ns.Labels["pod-security.kubernetes.io/enforce"])
}

// levels of Pod Security, the strictest last.
var securityLevels = []string{"privileged", "baseline", "restricted"}

// podSecurity compares what the namespace takes with what the pool's pods need.
func (l *scan) podSecurity(name, level string) {
	most, why := "restricted", ""
	if l.terms.AsImage {
		most, why = "baseline", "run_as: the user of an image may be root (run_as=submitter says that it is not)"
	}
	for _, p := range l.terms.Paths {
		switch {
		case p.Volume.Kind == settings.Host:
			most, why = "privileged", "paths: "+p.Prefix+" is a directory of the node (hostPath)"
		case p.Volume.Kind == settings.NFS && most == "restricted":
			most, why = "baseline", "paths: "+p.Prefix+" is NFS"
		}
	}
	switch s := &l.terms.Shape; {
	case s.HostNetwork:
		most, why = "privileged", "host_network"
	case s.LockMemory:
		most, why = "privileged", "lock_memory"
	}
	mend := fmt.Sprintf("kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=%s", name, most)
	switch {
	case level == "":
		l.addFinding("pod security", engine.Found, "", "%s has no level of its own: the cluster's holds", name)
	case severityRank(level) > severityRank(most):
		l.addFinding("pod security", engine.Missing, mend+", or change that setting: a PersistentVolumeClaim is taken in every namespace", "%s takes pods of the level %s alone, and those of this pool are %s: %s", name, level, most, why)
	case level == "restricted":
		l.addFinding("pod security", engine.Found, "", "%s takes pods of the level restricted alone: the pool's are, but for jobs of root, which are refused", name)
	default:
		l.addFinding("pod security", engine.Found, "", "%s takes pods of the level %s", name, level)
	}
	for _, a := range levelAllowances {
		if slices.Contains(l.terms.Allow, a) && level != "" && level != "privileged" {
			l.addFinding("pod security", engine.Warning, fmt.Sprintf("kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged, or allow without it", name), "jobs may ask for %s, and %s takes such pods not", a, name)
		}
	}
}

func severityRank(level string) int {
	for i, l := range securityLevels {
		if l == level {
			return i
		}
	}
	return len(securityLevels)
}

// checkRights asks for each verb.
func (l *scan) checkRights(ctx context.Context) error {
	var begins *gang.Gang
	if g, ok := gang.Choose(&l.terms, l.gangs); ok {
		begins = &g
	}
	all := Rights(&l.terms, begins)
	missing, err := missingRights(func(verb string, r *Right) (bool, error) {
		return l.isAllowed(ctx, l.cluster, verb, r)
	}, all)
	if err != nil {
		l.addFailure("rights", err)
		return nil
	}
	for _, i := range sortedKeys(missing) {
		r := &all[i]
		where := "in namespace " + r.Namespace
		if r.All {
			where = "in the whole cluster"
		}
		state := engine.Missing
		if r.All && !l.terms.Placed && r.Resource != cluster.Nodes || r.Resource == cluster.PersistentVolumes || r.Resource == cluster.StorageClasses {
			state = engine.Warning // what it shows is not placed by, or need not be
		}
		what := r.String()
		if r.Resource == cluster.Users || r.Resource == cluster.ServiceAccounts {
			what += " " + r.Name
		}
		l.addFinding("rights", state, l.grantCommand(), "%s %s %s: %s", strings.Join(missing[i], ", "), what, where, r.Why)
	}
	if len(missing) == 0 {
		l.granted = true
		l.addFinding("rights", engine.Found, "", "all that a pool of these settings needs")
	}
	l.checkHandover(ctx)
	return l.checkCreators(ctx, begins)
}

// checkHandover says whether machines of the pool can be handed over, where the settings do not ask for it: the
// rights to close nodes are more than jobs need.
func (l *scan) checkHandover(ctx context.Context) {
	if l.terms.Handover {
		return // the rights say it
	}
	all := handoverRights()
	missing, err := missingRights(func(verb string, r *Right) (bool, error) {
		return l.isAllowed(ctx, l.cluster, verb, r)
	}, all)
	if err != nil || len(missing) == 0 {
		return
	}
	var words []string
	for _, i := range sortedKeys(missing) {
		words = append(words, strings.Join(missing[i], ", ")+" "+all[i].String())
	}
	l.addFinding("hand-over", engine.Found, "", "none: the account may not %s, so machines of this pool cannot be handed over (--set handover=true asks for these rights, with --print-rbac)", strings.Join(words, "; "))
}

// isAllowed asks for one verb; of a right to one object, that one is asked for.
func (l *scan) isAllowed(ctx context.Context, way *cluster.Cluster, verb string, r *Right) (bool, error) {
	if r.Name != "" && verb == "get" {
		err := way.Get(ctx, r.Resource, r.Namespace, r.Name, nil)
		if fault.KindOf(err) == fault.Permission {
			return false, nil
		}
		return true, nil // that it is not there is said elsewhere
	}
	ok, _, err := way.Can(ctx, verb, r.Resource, r.Part, r.Namespace, r.Name)
	return ok, err
}

// grantCommand is the command of an administrator of the cluster that gives all rights at once.
func (l *scan) grantCommand() string {
	words := []string{"cox pool add", l.terms.Pool, "--engine kube --namespace", l.terms.Namespace}
	if g, ok := gang.Choose(&l.terms, l.gangs); ok {
		words = append(words, "--placed=false --set gang="+string(g.Kind))
		if l.terms.Approximate {
			words = append(words, "--set approximate=true")
		}
		if l.terms.Queue != "" {
			words = append(words, "--set queue="+shellQuote(l.terms.Queue))
		}
		if l.terms.Scheduler != "" {
			words = append(words, "--set scheduler="+shellQuote(l.terms.Scheduler))
		}
	} else if !l.terms.Placed {
		words = append(words, "--placed=false")
	}
	if l.terms.Reserve {
		words = append(words, "--set reserve=true")
	}
	if l.terms.Handover {
		words = append(words, "--set handover=true")
	}
	words = append(words, accountWords(&l.terms)...)
	if len(l.terms.Topology) > 0 && strings.HasPrefix(l.terms.Topology[0], settings.KueueTopology) {
		text, _ := json.Marshal(l.terms.Topology)
		words = append(words, "--set "+shellQuote("topology="+string(text)))
	}
	if len(l.terms.Classes) > 0 {
		text, _ := json.Marshal(l.terms.Classes)
		words = append(words, "--set "+shellQuote("device_class="+string(text)))
	}
	if l.terms.PriorityClass != "" {
		words = append(words, "--set priority_class="+l.terms.PriorityClass)
	}
	for _, k := range []settings.VolumeKind{settings.Claim, settings.Fresh} { // one will do: the rights of the first are those of the other, too
		if i := slices.IndexFunc(l.terms.Paths, func(p settings.Path) bool { return p.Volume.Kind == k }); i >= 0 {
			p := l.terms.Paths[i]
			words = append(words, "--set "+shellQuote(fmt.Sprintf("paths={%q:%q}", p.Prefix, p.Volume)))
			break
		}
	}
	return strings.Join(append(words, "--print-rbac="+l.quotedUser(), "| kubectl apply -f -"), " ")
}

// quotedUser is who asks, as a word of a shell.
func (l *scan) quotedUser() string { return shellQuote(cmp.Or(l.who, "user:NAME")) }

// shellQuote is a word as a shell takes it.
func shellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-._/@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// checkQuotas are those of the namespaces.
func (l *scan) checkQuotas(ctx context.Context) error {
	all := l.terms.Spaces()
	for _, ns := range all {
		where, which := "", "the namespace"
		if len(all) > 1 {
			where, which = "namespace "+ns+": ", "namespace "+ns
		}
		none := true
		_, err := cluster.List(ctx, l.cluster, cluster.ResourceQuotas, cluster.Selection{Namespace: ns}, func(q *corev1.ResourceQuota) error {
			none = false
			l.addFinding("quota", engine.Found, "", "%s%s: %s", where, q.Name, quotaUsage(q))
			return nil
		})
		if err == nil {
			_, err = cluster.List(ctx, l.cluster, cluster.LimitRanges, cluster.Selection{Namespace: ns}, func(r *corev1.LimitRange) error {
				none = false
				l.addFinding("limit range", engine.Found, "", "%s%s: %s", where, r.Name, limitRangeText(r))
				return nil
			})
		}
		switch {
		case err != nil:
			l.addFailure("quota", err)
		case none:
			l.addFinding("quota", engine.Found, "", "%s has none", which)
		}
	}
	return nil
}

// checkGang is what begins the pods of a job together.
func (l *scan) checkGang(ctx context.Context) error {
	var names []string
	for _, g := range l.gangs {
		names = append(names, fmt.Sprintf("%s (%s %s)", g.Kind, g.Resource, g.Resource.Version))
	}
	unknown := gang.UnknownVersions(l.served)
	for _, u := range unknown {
		l.addFinding("gangs", engine.Warning, "", "%s is served, a version that is not known here", u)
	}
	for _, g := range l.gangs {
		if missing := gang.MissingSettings(&l.terms, g.Kind); missing != "" && !l.terms.Placed {
			l.addFinding("gangs", engine.Found, "", "%s is there, and is not used without %s", g.Kind, missing)
		}
	}
	g, ok := gang.Choose(&l.terms, l.gangs)
	switch {
	case l.terms.Placed:
		l.addFinding("gangs", engine.Found, "", "Coxswain chooses the nodes and binds all pods of a job, or none")
	case !ok && l.terms.Gang != "":
		l.addFinding("gangs", engine.Missing, "leave gang, or install it", "%s is not there; there is %s", l.terms.Gang, cmp.Or(strings.Join(names, ", "), "nothing that begins pods together"))
	case !ok:
		l.addFinding("gangs", engine.Warning, "--placed, where Coxswain chooses the nodes; or a scheduler with gangs: native (Kubernetes 1.36 on, feature gate GangScheduling), Volcano, KAI",
			"the cluster has nothing that begins pods together: jobs on one node run, coupled ones on several are refused")
	case g.Ability() == engine.GangApproximate:
		l.addFinding("gangs", engine.Warning, "--placed, or a scheduler with gangs beside it", "%s is taken, as the settings say, of %s: all or none in quota alone, not on nodes", g.Kind, strings.Join(names, ", "))
		l.kueueQueues(ctx)
	default:
		why := "the first of these that can be"
		if l.terms.Gang != "" {
			why = "as the settings say"
		}
		l.addFinding("gangs", engine.Found, "", "%s is taken, %s: %s; that its scheduler goes by it, cox verify %s shows", g.Kind, why, strings.Join(names, ", "), l.terms.Pool)
	}
	return nil
}

// checkPodNames is whether pods can find each other.
func (l *scan) checkPodNames(ctx context.Context) error {
	stop := errors.New("found")
	address := ""
	_, err := cluster.List(ctx, l.cluster, cluster.Services, cluster.Selection{Namespace: "kube-system", Labels: "k8s-app=kube-dns"}, func(s *corev1.Service) error {
		address = s.Spec.ClusterIP
		return stop
	})
	switch {
	case errors.Is(err, stop):
		l.addFinding("names", engine.Found, "", "the cluster's name service is at %s", address)
	case fault.KindOf(err) == fault.Permission:
		l.addFinding("names", engine.Found, "", "whether the cluster has a name service may not be looked at; cox verify %s shows it", l.terms.Pool)
	case err != nil:
		l.addFailure("names", err)
	default:
		l.addFinding("names", engine.Warning, "install CoreDNS, or look under which name the cluster has it", "kube-system has no service k8s-app=kube-dns: pods of a job on several nodes find each other by name")
	}
	return nil
}

func sortedKeys(m map[int][]string) []int { return slices.Sorted(maps.Keys(m)) }
