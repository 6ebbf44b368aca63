package slurm

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
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
		im.readDuration(s, func(d account.Duration) { p.MaxTime = d })
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
		im.noteElsewhere(s, "partitions in cox.yaml: nodes, default, default_time")
	default:
		if harmless := partitionDefaults[key]; harmless != "" && strings.EqualFold(harmless, s.value) {
			im.noteKept(s) // it is so here
			return
		}
		if why, ok := partitionWords[key]; ok {
			im.refuseSetting(s, "%s", why)
			return
		}
		im.refuseSetting(s, "%s", unknownDirective(s.key, "PartitionName line", partitionNames()))
	}
}

// partNodes notes the nodes of a partition; the one without a name is DEFAULT.
func (im *importer) partNodes(name string, s setting) {
	c := im.cluster
	im.noteElsewhere(s, "partitions in cox.yaml: nodes, default, default_time; in --cluster")
	c.asked = append(c.asked, s)
	if i := slices.IndexFunc(c.parts, func(p part) bool { return p.name == name }); i >= 0 {
		c.parts[i].nodes = s.value
	} else if name != "" {
		c.parts = append(c.parts, part{name, s.value})
	}
}

// partitionDefaults are values that say nothing else than what is so here.
var partitionDefaults = map[string]string{
	"state": "up", "exclusiveuser": "no", "lln": "no", "hidden": "no", "rootonly": "no", "reqresv": "no",
	"disablerootjobs": "no", "allowgroups": "all", "allocnodes": "all", "powerdownonidle": "no",
}

// partitionWords say why settings of partitions have no place here.
var partitionWords = map[string]string{
	"state":                "a partition is up; cox node drain keeps work off its nodes",
	"oversubscribe":        "CPUs and devices are held by jobs alone; a job asks for a share of a device (docs/native.md)",
	"exclusiveuser":        "a job asks for whole nodes itself (--exclusive)",
	"lln":                  "placement packs, so that large jobs find whole nodes",
	"hidden":               "cox partitions shows every partition",
	"rootonly":             "allow_accounts says who may use it",
	"allowgroups":          "accounts say who may: allow_accounts, with the group's members in an account",
	"denygroups":           "accounts say who may: deny_accounts",
	"allocnodes":           "jobs come from wherever the server is reached",
	"alternate":            "a job names several partitions itself",
	"disablerootjobs":      "leave root out of every account",
	"defmempercpu":         "a job says its memory itself",
	"defmempernode":        "a job says its memory itself",
	"defcpupergpu":         "a job says its CPUs itself (--cpus-per-gpu)",
	"defmempergpu":         "a job says its memory itself (--mem-per-gpu)",
	"jobdefaults":          "a job says it itself",
	"maxmempercpu":         "limits of the partition's qos: job: {memory: …}",
	"maxmempernode":        "limits of the partition's qos: node: {memory: …}",
	"maxcpuspernode":       "limits of the partition's qos: node: {cpu: …}",
	"maxcpuspersocket":     "sockets are not counted",
	"maxrestartcount":      "a job that fails to start waits longer each time",
	"overtimelimit":        "a job ends at its limit",
	"reqresv":              "give the partition's nodes a reservation instead",
	"selecttypeparameters": "CPUs, memory and devices are always counted",
	"powerdownonidle":      "nodes are not powered from here",
	"resumetimeout":        "nodes are not powered from here",
	"suspendtime":          "nodes are not powered from here",
	"suspendtimeout":       "nodes are not powered from here",
	"cpubind":              "tasks are bound by the job's own request",
	"exclusivetopo":        "a job asks for a level of the topology itself",
	"topology":             "the topology is a property of nodes",
	"exclusive":            "a job asks for whole nodes itself (--exclusive)",
}

// partitionNames are the settings of partitions.
func partitionNames() []string {
	return strings.Fields(`AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode Default DefaultTime DenyAccounts DenyQos
		DisableRootJobs ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxMemPerCPU MaxMemPerNode MaxTime MaxNodes MinNodes Nodes OverSubscribe OverTimeLimit PreemptMode Priority
		PriorityJobFactor PriorityTier QOS RootOnly ReqResv SelectTypeParameters Shared State TRESBillingWeights ResumeTimeout SuspendTime SuspendTimeout MaxCPUsPerSocket PowerDownOnIdle
		ExclusiveTopo Topology Exclusive`)
}
