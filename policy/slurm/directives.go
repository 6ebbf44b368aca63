package slurm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// unused is a reason why directives are not used, and their names.
type unused struct{ why, names string }

// unusedConf are the directives of slurm.conf, of 20.11 to 26.05, that are neither rules of a
// site nor have a place in cox.yaml.
var unusedConf = []unused{
	{"where Slurm's daemons run, how they find each other and how patient they are", `AccountingStorageBackupHost AccountingStorageExternalHost
		AccountingStorageHost AccountingStorageLoc AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageType AccountingStorageUser
		BackupAddr BackupController ControlAddr ControlMachine SlurmctldAddr SlurmctldHost SlurmctldPort SlurmdPort SchedulerPort SlurmUser SlurmdUser
		CommunicationParameters TreeWidth RoutePlugin MessageTimeout TCPTimeout KeepAliveTime EioTimeout MaxDBDMsgs SlurmctldTimeout SlurmdTimeout SlurmctldParameters
		SlurmdParameters FederationParameters SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SrunPortRange PluginDir PlugStackConfig SlurmctldPlugstack SlurmdSpoolDir
		DefaultStorageHost DefaultStorageLoc DefaultStoragePass DefaultStoragePort DefaultStorageType DefaultStorageUser BatchStartTimeout GroupUpdateForce GroupUpdateTime
		CacheGroups ReconfigFlags DataParserParameters HttpParserType UrlParserType MaxNodeCount`},
	{"how Slurm's daemons trust each other; who may do what here is auth in cox.yaml", `AuthAltTypes AuthAltParameters AuthInfo AuthType CredType CryptoType
		JobCredentialPrivateKey JobCredentialPublicCertificate HashPlugin TLSParameters TLSType CertmgrType CertmgrParameters CertgenType CertgenParameters SchedulerAuth
		SchedulerRootFilter SlurmctldHttpAuthParameters SlurmdHttpAuthParameters MetricsAuthUsers MCSParameters MCSPlugin`},
	{"logs and figures of Slurm's daemons; here log in cox.yaml and docs/metrics.md", `DebugFlags LogTimeFormat SlurmctldLogFile SlurmctldPidFile SlurmctldSyslogDebug
		SlurmdDebug SlurmdLogFile SlurmdPidFile SlurmdSyslogDebug SlurmSchedLogFile SlurmSchedLogLevel MetricsType MetricsParameters`},
	{"what Slurm measures of jobs and keeps of them; here every attempt is in the ledger (docs/state.md)", `AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType
		AcctGatherNodeFreq AcctGatherProfileType AcctGatherInterconnectType AcctGatherInfinibandType AcctGatherFilesystemType JobAcctGatherType JobAcctGatherFrequency
		JobAcctGatherParams JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser ExtSensorsType ExtSensorsFreq TrackWCKey`},
	{"how Slurm starts, binds and confines tasks; it goes on doing so in a pool that is Slurm's", `GetEnvTimeout InteractiveStepOptions SallocDefaultCommand LaunchType
		MpiDefault MpiParams PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept TaskPlugin TaskPluginParam X11Parameters UsePAM VSizeFactor TmpFS
		ProctrackType JobContainerType NamespaceType SwitchType SwitchParameters BcastExclude BcastParameters SbcastParameters CpuFreqDef CpuFreqGovernors GpuFreqDef
		CoreSpecPlugin AllowSpecResourcesUsage KillOnBadExit WaitTime InactiveLimit MemLimitEnforce CompleteWait DisableRootJobs`},
	{"programs that Slurm runs, also in a pool that is Slurm's; nothing of their kind runs here", `PrologSlurmctld EpilogSlurmctld PrologFlags PrologEpilogTimeout PrologTimeout
		EpilogTimeout EpilogMsgTime TaskProlog TaskEpilog SrunProlog SrunEpilog ResvProlog ResvEpilog HealthCheckInterval HealthCheckNodeState HealthCheckProgram
		HealthCheckTimeout UnkillableStepProgram PrEpParameters PrEpPlugins CliFilterPlugins CliFilterParameters`},
	{"nodes are not powered from here; Slurm does it in its own pool", `SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout
		ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout PowerParameters PowerPlugin PowerAction RebootProgram NodeFeaturesPlugins`},
	{"CPUs, memory and devices are always counted, as select/cons_tres does with CR_Core_Memory", `SelectType SelectTypeParameters FastSchedule`},
	{"the topology is a property of nodes: of the pool's, or of topology.conf in --cluster", `TopologyPlugin TopologyParam`},
	{"burst buffers and checkpoints of Slurm's own are not there; docs/checkpoint.md has what is", `BurstBufferParameters BurstBufferType CheckpointType JobCheckpointDir`},
	{"numbers of jobs are not bounded so; submitted in limits bounds an account's", `MaxJobCount MaxJobId FirstJobId MaxStepCount MaxTasksPerNode MaxBatchRequeue`},
	{"a job says it itself", `DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode RequeueExit RequeueExitHold`},
	{"a job ends at its limit, and with its reservation", `OverTimeLimit ResvOverRun`},
	{"a node that answers again is used again", `ReturnToService`},
	{"limits of a QOS: node: {memory: …}, job: {memory: …}", `MaxMemPerCPU MaxMemPerNode`},
	{"devices are found by the engine", `GresTypes`},
	{"all of cpu, memory, gpu, node and licences is always counted", `AccountingStorageTRES`},
	{"licences are counted here as licenses of the rules say", `LicenseParameters`},
	{"there is no crontab of jobs", `ScronParameters`},
	{"the priority is Slurm's multifactor formula (docs/priority.md), which has no such switch", `PriorityParameters`},
}

// oldNames say what stands for directives that newer versions of Slurm have not.
var oldNames = map[string]string{
	"controlmachine": "SlurmctldHost", "controladdr": "SlurmctldHost", "backupcontroller": "a second SlurmctldHost", "backupaddr": "a second SlurmctldHost",
	"fastschedule": "SlurmdParameters=config_overrides", "cachegroups": "CommunicationParameters", "memlimitenforce": "JobAcctGatherParams=OverMemoryKill", "cryptotype": "CredType",
	"accountingstoragebackuphost": "AccountingStorageBackupHost", "accountingstorejobcomment": "AccountingStoreFlags=job_comment", "acctgatherinfinibandtype": "AcctGatherInterconnectType",
	"slurmctldaddr": "SlurmctldHost", "accountingstorageloc": "slurmdbd.conf", "accountingstoragepass": "AuthInfo", "accountingstorageuser": "slurmdbd.conf", "routeplugin": "TopologyParam=RouteTree",
	"checkpointtype": "nothing", "jobcheckpointdir": "nothing", "schedulerauth": "nothing", "schedulerport": "nothing", "schedulerrootfilter": "nothing", "launchtype": "nothing",
	"jobcredentialprivatekey": "CredType=auth/slurm", "jobcontainertype": "NamespaceType", "shared": "OverSubscribe", "procs": "CPUs", "frontendname": "nothing",
}

// ofNodes are what NodeName= lines have, and what of it is used.
var ofNodes = []unused{
	{"", "CPUs Procs Sockets SocketsPerBoard Boards CoresPerSocket ThreadsPerCore RealMemory Gres Feature Features State Topology"}, // used
	{"how daemons reach a node", "BcastAddr NodeAddr NodeHostname Port Parameters GresConf"},
	{"the engine asks Slurm how much of a node is for jobs", "CoreSpecCount CPUSpecList MemSpecLimit RestrictedCoresPerGPU"},
	{"placement packs; weights of nodes are not there", "Weight"},
	{"a job counts what it holds; TRESBillingWeights of a partition say what for", "TRESWeights"},
	{"tasks are bound by the job's own request", "CpuBind"},
	{"local disks are not counted", "TmpDisk"},
	{"the state of a moment, which the engine asks for", "Reason"},
	{"nodes are not powered from here", "SuspendTime"},
}

var (
	ofSets     = []unused{{"", "Feature Nodes"}}
	ofDown     = []unused{{"", "State"}, {"the state of a moment, which the engine asks for", "Reason"}}
	ofFront    = []unused{{"front ends are gone from Slurm (24.11 was the last)", "AllowGroups AllowUsers DenyGroups DenyUsers FrontendAddr Port Reason State"}}
	ofGres     = []unused{{"", "Name Type Count File Files Cores CPUs Links Link Flags AutoDetect NodeName MultipleFiles"}}
	ofSwitches = []unused{{"", "SwitchName Nodes Switches BlockName BlockSizes BlockLevels"}, {"links are equal here", "LinkSpeed"}}
)

// index is directives by their names in lower case.
type index map[string]string

func indexOf(groups []unused) index {
	out := index{}
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.names) {
			out[strings.ToLower(name)] = g.why
		}
	}
	return out
}

var confIndex = indexOf(unusedConf)

// namesOf lists the names of groups as Slurm writes them.
func namesOf(groups ...[]unused) (out []string) {
	for _, g := range slices.Concat(groups...) {
		out = append(out, strings.Fields(g.names)...)
	}
	return out
}

// unknownDirective says of a directive that no version of Slurm has it, and which one may be meant.
func unknownDirective(name, where string, known []string) string {
	text := "a " + where + " of Slurm 20.11 to 26.05 has no such setting"
	if near := nearestName(name, known); near != "" {
		text += ": is " + near + " meant?"
	}
	return text
}

// nearestName is the known name that a given one may stand for, or empty.
func nearestName(name string, known []string) string {
	if len(name) > 60 {
		return ""
	}
	best, found := 1+min(2, len(name)/3), ""
	for _, k := range known {
		if len(k)-len(name) >= best || len(name)-len(k) >= best {
			continue
		}
		if d := getopt.Distance(strings.ToLower(name), strings.ToLower(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

// Directive is a directive of slurm.conf for people.
type Directive struct{ Name, Becomes string }

// Directives lists what is known of slurm.conf: every directive with what becomes of it.
func Directives() (out []Directive) {
	for name, where := range placed {
		out = append(out, Directive{name, where})
	}
	for name, rule := range ruleWords {
		out = append(out, Directive{name, rule})
	}
	for _, g := range unusedConf {
		for name := range strings.FieldsSeq(g.names) {
			text := "not used: " + g.why
			if old := oldNames[strings.ToLower(name)]; old != "" && old != name {
				text += "; an old name, since then " + old
			}
			out = append(out, Directive{name, text})
		}
	}
	slices.SortFunc(out, func(a, b Directive) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return out
}

// LineSetting is a setting of lines other than slurm.conf's single directives, for people.
type LineSetting struct{ Line, Name, Becomes string }

// Lines lists what lines of nodes, sets, gres.conf, topology.conf and partitions have.
func Lines() (out []LineSetting) {
	for _, l := range []struct {
		line, used string
		of         []unused
	}{
		{"NodeName", "the machines: `--cluster`", ofNodes},
		{"NodeSet", "the nodes of partitions: `--cluster`", ofSets},
		{"DownNodes", "not used: the state of a moment, which the engine asks for", ofDown},
		{"FrontendName", "", ofFront},
		{"gres.conf", "types of GPUs: `--cluster`; counts are checked, the rest is found by the engine", ofGres},
		{"topology.conf", "where nodes lie: `--cluster`", ofSwitches},
	} {
		for _, g := range l.of {
			text := l.used
			if g.why != "" {
				text = "not used: " + g.why
			}
			out = append(out, LineSetting{l.line, strings.Join(strings.Fields(g.names), ", "), text})
		}
	}
	for _, n := range partitionNames() {
		text := partitionWords[strings.ToLower(n)]
		if kept := partitionKept[n]; kept != "" {
			text = kept
		} else if same := partitionDefaults[strings.ToLower(n)]; same != "" {
			text = "kept if " + same + "; else refused: " + text
		} else {
			text = "refused: " + text
		}
		out = append(out, LineSetting{"PartitionName", n, text})
	}
	return out
}

// partitionKept are the settings of partitions that have a place.
var partitionKept = map[string]string{
	"MaxTime": "`max_time`", "PriorityTier": "`tier`", "PriorityJobFactor": "`priority`", "Priority": "`tier` and `priority`", "QOS": "`qos`", "AllowAccounts": "`allow_accounts`",
	"DenyAccounts": "`deny_accounts`", "AllowQos": "`allow_qos`", "DenyQos": "`deny_qos`", "MaxNodes": "`max_nodes`", "MinNodes": "`min_nodes`", "GraceTime": "`grace`", "PreemptMode": "`preempt_mode`",
	"TRESBillingWeights": "`billing`", "Nodes": "`partitions` in cox.yaml; `--cluster`", "Default": "`partitions` in cox.yaml", "DefaultTime": "`partitions` in cox.yaml",
	"OverSubscribe": "NO, FORCE: `preempt_mode`, `time_slice`; YES is refused", "Shared": "an old name of OverSubscribe",
}
