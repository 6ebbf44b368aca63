package slurm

import (
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/policy"
)

// readPartition reads a line PartitionName=…; DEFAULT is what later ones begin with.
func (im *importer) readPartition(all []setting) {
	name := all[0].value
	if strings.EqualFold(name, "DEFAULT") {
		im.noteKept(all[0])
		scratch := account.Partition{}
		for _, s := range all[1:] {
			im.ofPartition(&scratch, s)
			im.defaults = slices.DeleteFunc(im.defaults, func(d setting) bool { return d.hasKey(s.key) })
			im.defaults = append(im.defaults, s)
		}
		return
	}
	i := slices.IndexFunc(im.p.Partitions, func(p account.Partition) bool { return p.Name == name })
	if i < 0 {
		im.p.Partitions = append(im.p.Partitions, account.Partition{Name: name})
		i = len(im.p.Partitions) - 1
		p := &im.p.Partitions[i]
		quiet := *im
		quiet.report, quiet.told = &policy.Report{}, nil // they were told at the DEFAULT line
		for _, d := range im.defaults {
			if !slices.ContainsFunc(all, func(s setting) bool { return s.hasKey(d.key) }) {
				quiet.ofPartition(p, d)
			}
		}
	}
	im.noteKept(all[0])
	im.cluster.partNamed(name)
	for _, s := range all[1:] {
		im.ofPartition(&im.p.Partitions[i], s)
	}
}

// ofPartition is one setting of a partition.
func (im *importer) ofPartition(p *account.Partition, s setting) {
	names := func(to *[]string) {
		if isUnlimited(s.value) || strings.EqualFold(s.value, "all") {
			*to = nil
		} else {
			*to = splitCommas(s.value)
		}
		im.noteKept(s)
	}
	switch key := strings.ToLower(s.key); key {
	case "maxtime":
		im.readDuration(s, func(d account.Duration) {
			if p.MaxTime = d; p.Name != "" {
				im.cluster.partNamed(p.Name).longest = time.Duration(d)
			}
		})
		if isUnlimited(s.value) && p.Name != "" { // more than DEFAULT says
			p.MaxTime, im.cluster.partNamed(p.Name).longest = 0, 0
		}
	case "prioritytier":
		im.readNumber(s, 16, func(n int64) { p.Tier = int32(n) })
	case "priorityjobfactor":
		im.readNumber(s, 32, func(n int64) { p.Priority = uint32(n) })
	case "priority":
		im.readNumber(s, 16, func(n int64) { p.Tier, p.Priority = int32(n), uint32(n) })
	case "qos":
		p.QOS = s.value
		if isUnlimited(s.value) || strings.EqualFold(s.value, "N/A") {
			p.QOS = ""
		}
		im.noteKept(s)
	case "allowaccounts":
		names(&p.AllowAccts)
	case "denyaccounts":
		names(&p.DenyAccts)
	case "allowqos":
		names(&p.AllowQOS)
	case "denyqos":
		names(&p.DenyQOS)
	case "maxnodes":
		im.readNumber(s, 31, func(n int64) { p.MaxNodes = int(n) })
	case "minnodes":
		im.readNumber(s, 31, func(n int64) { p.MinNodes = int(n) })
	case "gracetime":
		im.readSeconds(s, func(d account.Duration) { p.Grace = d })
	case "preemptmode":
		if strings.EqualFold(s.value, "off") {
			p.PreemptMode = "off"
			im.noteKept(s)
			return
		}
		im.preemptMode(s, &p.PreemptMode)
	case "oversubscribe", "shared":
		im.readOverSubscribe(p, s)
	case "tresbillingweights":
		im.readBillingWeights(s, func(w map[string]float64) { p.Billing = w })
	case "nodes":
		im.partNodes(p.Name, s)
	case "default", "defaulttime":
		im.partDefaults(p.Name, s)
	default:
		if same := partitionDefaults[key]; same != "" && strings.EqualFold(same, s.value) {
			im.noteKept(s) // it is so here
			return
		}
		if why, ok := harmlessWords[key]; ok {
			im.noteVerdict(s, policy.Ignored, "%s", why)
			return
		}
		if why, ok := partitionWords[key]; ok {
			im.refuseSetting(s, "%s", why)
			return
		}
		im.refuseSetting(s, "%s", unknownDirective(s.key, "PartitionName line", partitionNames()))
	}
}

// inServer is where a partition's nodes and defaults go.
const inServer = "partitions in cox.yaml (--config writes it)"

// partNodes notes the nodes of a partition; the one without a name is DEFAULT.
func (im *importer) partNodes(name string, s setting) {
	c := im.cluster
	im.noteElsewhere(s, "%s", inServer)
	c.asked = append(c.asked, s)
	if name != "" {
		c.partNamed(name).nodes = s.value
	}
}

// partDefaults reads Default and DefaultTime of a partition. Of several defaults the last one is.
func (im *importer) partDefaults(name string, s setting) {
	im.noteElsewhere(s, "%s", inServer)
	if name == "" {
		return
	}
	c := im.cluster
	if s.hasKey("default") {
		if !isYes(s.value) {
			c.partNamed(name).isDefault = false
			return
		}
		for i := range c.parts {
			c.parts[i].isDefault = false
		}
		c.partNamed(name).isDefault = true
		return
	}
	if isUnlimited(s.value) {
		return
	}
	d, err := slurmfmt.ParseTimeLimit(s.value)
	if err != nil || d < 0 {
		im.refuseUnreadable(s, "a time such as 30, 1:00:00 or 2-0")
		return
	}
	c.partNamed(name).usual = d
}

// partitionDefaults are values that say nothing else than what is so here.
var partitionDefaults = map[string]string{
	"state": "up", "exclusiveuser": "no", "lln": "no", "hidden": "no", "rootonly": "no", "reqresv": "no",
	"disablerootjobs": "no", "allowgroups": "all", "allocnodes": "all", "powerdownonidle": "no",
}

// harmlessWords are settings of partitions without which no job runs differently.
var harmlessWords = map[string]string{
	"hidden":          "cox partitions and sinfo show every partition",
	"cpubind":         "tasks are bound as their job asks",
	"powerdownonidle": slurmPower, "resumetimeout": slurmPower, "suspendtime": slurmPower, "suspendtimeout": slurmPower,
}

const slurmPower = "Slurm switches nodes on and off in a Slurm pool; Coxswain never does"

// partitionWords say of settings of partitions that have no place here what to do instead.
var partitionWords = map[string]string{
	"state":                "partitions are always open: drain their nodes (cox node drain), or leave the partition out of cox.yaml",
	"oversubscribe":        "CPUs and GPUs belong to one job at a time; a job may ask for a share of a GPU (docs/reference/native.md)",
	"exclusiveuser":        "a job that wants nodes for itself says --exclusive",
	"lln":                  "placement packs jobs together, so that large jobs find whole nodes",
	"rootonly":             "allow_accounts says who may use a partition",
	"allowgroups":          "put the members of the group into an account, and name it in allow_accounts",
	"denygroups":           "put the members of the group into an account, and name it in deny_accounts",
	"allocnodes":           "jobs may be submitted from every machine that reaches the server",
	"alternate":            "a job names several partitions itself: --partition=a,b",
	"disablerootjobs":      "root may submit jobs",
	"defmempercpu":         noDefaults,
	"defmempernode":        noDefaults,
	"defcpupergpu":         "jobs get no default number of CPUs: have scripts say --cpus-per-gpu",
	"defmempergpu":         noDefaults,
	"jobdefaults":          noDefaults,
	"maxmempercpu":         "set it in the QOS of the partition: limits: {job: {memory: …}}",
	"maxmempernode":        "set it in the QOS of the partition: limits: {node: {memory: …}}",
	"maxcpuspernode":       "set it in the QOS of the partition: limits: {node: {cpu: …}}",
	"maxcpuspersocket":     "Coxswain does not count sockets",
	"overtimelimit":        "a job ends at its limit: raise max_time by as much",
	"reqresv":              "reserve the nodes of the partition instead (cox reserve create)",
	"selecttypeparameters": "Coxswain always counts CPUs, memory and GPUs",
	"exclusivetopo":        "a job asks for a level of the topology itself (docs/explanation/topology.md)",
	"topology":             "all partitions have the topology of their nodes",
	"exclusive":            "a job that wants nodes for itself says --exclusive",
}

const noDefaults = "jobs get no default amount of memory: a job without --mem counts no memory, so more jobs may share a node; have scripts say --mem"

// partitionNames are the settings of partitions.
func partitionNames() []string {
	return strings.Fields(`AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode Default DefaultTime DenyAccounts DenyQos
		DisableRootJobs ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxMemPerCPU MaxMemPerNode MaxTime MaxNodes MinNodes Nodes OverSubscribe OverTimeLimit PreemptMode Priority
		PriorityJobFactor PriorityTier QOS RootOnly ReqResv SelectTypeParameters Shared State TRESBillingWeights ResumeTimeout SuspendTime SuspendTimeout MaxCPUsPerSocket PowerDownOnIdle
		ExclusiveTopo Topology Exclusive`)
}
