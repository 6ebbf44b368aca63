package slurm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// unused is a reason why directives are not used, and their names.
type unused struct {
	why, names string
	differs    bool // jobs may run differently without them
}

// unusedConf are the directives of slurm.conf, of 20.11 to 26.05, that are neither rules of a
// site nor have a place in cox.yaml.
var unusedConf = []unused{
	{why: "where Slurm's daemons run, and how they reach each other", names: `AccountingStorageBackupHost AccountingStorageExternalHost
		AccountingStorageHost AccountingStorageLoc AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageType AccountingStorageUser
		BackupAddr BackupController ControlAddr ControlMachine SlurmctldAddr SlurmctldHost SlurmctldPort SlurmdPort SchedulerPort SlurmUser SlurmdUser StateSaveLocation
		CommunicationParameters TreeWidth RoutePlugin MessageTimeout TCPTimeout KeepAliveTime EioTimeout MaxDBDMsgs SlurmctldTimeout SlurmdTimeout SlurmctldParameters
		SlurmdParameters FederationParameters SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SrunPortRange PluginDir PlugStackConfig SlurmctldPlugstack SlurmdSpoolDir
		DefaultStorageHost DefaultStorageLoc DefaultStoragePass DefaultStoragePort DefaultStorageType DefaultStorageUser BatchStartTimeout GroupUpdateForce GroupUpdateTime
		CacheGroups ReconfigFlags DataParserParameters HttpParserType UrlParserType MaxNodeCount`},
	{why: "how Slurm's daemons trust each other; auth in cox.yaml says who may do what here", names: `AuthAltTypes AuthAltParameters AuthInfo AuthType CredType CryptoType
		JobCredentialPrivateKey JobCredentialPublicCertificate HashPlugin TLSParameters TLSType CertmgrType CertmgrParameters CertgenType CertgenParameters SchedulerAuth
		SchedulerRootFilter SlurmctldHttpAuthParameters SlurmdHttpAuthParameters MetricsAuthUsers`},
	{why: "logs and metrics of Slurm's daemons; see log in cox.yaml and docs/reference/metrics.md for ours", names: `DebugFlags LogTimeFormat SlurmctldLogFile SlurmctldPidFile SlurmctldSyslogDebug
		SlurmdDebug SlurmdLogFile SlurmdPidFile SlurmdSyslogDebug SlurmSchedLogFile SlurmSchedLogLevel MetricsType MetricsParameters`},
	{why: "what Slurm measures of jobs and keeps of them; here the journal has every attempt (docs/explanation/state.md)", names: `AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType
		AcctGatherNodeFreq AcctGatherProfileType AcctGatherInterconnectType AcctGatherInfinibandType AcctGatherFilesystemType JobAcctGatherType JobAcctGatherFrequency
		JobAcctGatherParams JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser ExtSensorsType ExtSensorsFreq TrackWCKey`},
	{why: "how Slurm starts and confines tasks; it goes on doing so in a Slurm pool", names: `GetEnvTimeout InteractiveStepOptions SallocDefaultCommand LaunchType
		MpiDefault MpiParams PropagatePrioProcess TaskPlugin TaskPluginParam X11Parameters UsePAM TmpFS
		ProctrackType SwitchType SwitchParameters BcastExclude BcastParameters SbcastParameters CpuFreqDef CpuFreqGovernors GpuFreqDef
		CoreSpecPlugin AllowSpecResourcesUsage`},
	{why: "how long Slurm waits for its own programs", names: `EpilogMsgTime EpilogTimeout PrologEpilogTimeout PrologTimeout PrologFlags HealthCheckInterval HealthCheckNodeState HealthCheckTimeout`},
	{why: "Slurm switches nodes on and off in a Slurm pool; Coxswain never does", names: `SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout
		ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout PowerParameters PowerPlugin PowerAction RebootProgram NodeFeaturesPlugins`},
	{why: "the kinds of device; Coxswain finds the devices of each node by itself", names: `GresTypes`},
	{why: "Coxswain always counts CPUs, memory, GPUs, nodes and licences", names: `AccountingStorageTRES`},
	{why: "nodes have a topology where topology.conf places them", names: `TopologyPlugin TopologyParam`},
	{why: "where Slurm looks for licences; here licenses in the rules has them", names: `LicenseParameters`},

	{differs: true, why: "nothing here runs this program; hooks.prolog and hooks.epilog in cox.yaml run one before and after each job on its nodes", names: `PrologSlurmctld EpilogSlurmctld
		TaskProlog TaskEpilog SrunProlog SrunEpilog ResvProlog ResvEpilog UnkillableStepProgram PrEpParameters PrEpPlugins CliFilterPlugins CliFilterParameters`},
	{differs: true, why: "nothing here tests nodes with a program of the site: drain a sick node with cox node drain", names: `HealthCheckProgram`},
	{differs: true, why: "jobs get no default amount of memory or CPUs: a job without --mem counts no memory, so more jobs may share a node; have scripts ask for what they need", names: `DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode`},
	{differs: true, why: "a job ends at its limit, and at the end of its reservation: raise the limits by as much", names: `OverTimeLimit ResvOverRun`},
	{differs: true, why: "a node that answers again is used again, whatever made it silent", names: `ReturnToService`},
	{differs: true, why: "set limits in a QOS instead: node: {memory: …} or job: {memory: …}", names: `MaxMemPerCPU MaxMemPerNode`},
	{differs: true, why: "the server has no such bound: submitted in the limits of an account or a QOS bounds its jobs", names: `MaxJobCount MaxStepCount MaxTasksPerNode MaxBatchRequeue`},
	{differs: true, why: "job numbers begin at 1 and are never given twice", names: `MaxJobId FirstJobId`},
	{differs: true, why: "a step says it itself: srun --kill-on-bad-exit, srun --wait", names: `KillOnBadExit WaitTime`},
	{differs: true, why: "nodes are free again as soon as the work on them has ended", names: `CompleteWait`},
	{differs: true, why: "an allocation without steps is not ended for that", names: `InactiveLimit`},
	{differs: true, why: "memory limits are enforced wherever control groups can enforce them", names: `MemLimitEnforce VSizeFactor`},
	{differs: true, why: "root may submit jobs", names: `DisableRootJobs`},
	{differs: true, why: "jobs share /tmp of the machine; a Slurm pool goes on giving each job its own", names: `JobContainerType NamespaceType`},
	{differs: true, why: "there are no security labels: auth.private in cox.yaml hides the jobs of others", names: `MCSParameters MCSPlugin`},
	{differs: true, why: "there are no burst buffers, and no checkpoints that Slurm makes: docs/explanation/checkpoint.md says how jobs save their state here", names: `BurstBufferParameters BurstBufferType CheckpointType JobCheckpointDir`},
	{differs: true, why: "there is no scrontab", names: `ScronParameters`},
	{differs: true, why: "the priority is Slurm's multifactor formula (docs/explanation/priority.md), which has no such switch here", names: `PriorityParameters`},
	{differs: true, why: "nodes have the CPUs, memory and GPUs that they report", names: `FastSchedule`},
}

// confDefaults are values of directives that differ with which they do not.
var confDefaults = map[string][]string{
	"returntoservice": {"2"}, "inactivelimit": {"0"}, "overtimelimit": {"0"}, "resvoverrun": {"0"}, "killonbadexit": {"0"}, "completewait": {"0"}, "waittime": {"0"},
	"disablerootjobs": {"no"}, "firstjobid": {"1"}, "vsizefactor": {"0"}, "memlimitenforce": {"yes"}, "mcsplugin": {"mcs/none"}, "checkpointtype": {"checkpoint/none"},
	"jobcontainertype": {"job_container/none"}, "burstbuffertype": {"burst_buffer/none"}, "fastschedule": {"0"},
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
	{names: "CPUs Procs Sockets SocketsPerBoard Boards CoresPerSocket ThreadsPerCore RealMemory Gres Feature Features State Topology"}, // used
	{why: "how Slurm's daemons reach the node", names: "BcastAddr NodeAddr NodeHostname Port Parameters GresConf"},
	{why: "tasks are bound as their job asks", names: "CpuBind"},
	{why: "a note about the node", names: "Reason"},
	{why: "Slurm switches nodes on and off in a Slurm pool; Coxswain never does", names: "SuspendTime"},
	{differs: true, why: "a Slurm pool keeps these back; on other nodes jobs may use all CPUs and all memory", names: "CoreSpecCount CPUSpecList MemSpecLimit RestrictedCoresPerGPU"},
	{differs: true, why: "nodes have no weights: placement packs jobs together", names: "Weight"},
	{differs: true, why: "a job is billed for what it holds: billing of a partition has the weights", names: "TRESWeights"},
	{differs: true, why: "Coxswain does not count local disk space", names: "TmpDisk"},
}

var (
	ofSets     = []unused{{names: "Feature Nodes"}}
	ofDown     = []unused{{names: "State"}, {why: "a note about the node", names: "Reason"}}
	ofFront    = []unused{{why: "Slurm 24.11 was the last to have front ends", names: "AllowGroups AllowUsers DenyGroups DenyUsers FrontendAddr Port Reason State"}}
	ofGres     = []unused{{names: "Name Type Count File Files Cores CPUs Links Link Flags AutoDetect NodeName MultipleFiles"}}
	ofSwitches = []unused{{names: "SwitchName Nodes Switches BlockName BlockSizes BlockLevels"}, {why: "all links count as equal", names: "LinkSpeed"}}
)

// index is directives by their names in lower case.
type index map[string]unused

func indexOf(groups []unused) index {
	out := index{}
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.names) {
			out[strings.ToLower(name)] = unused{why: g.why, differs: g.differs}
		}
	}
	return out
}

var confIndex = indexOf(unusedConf)

// verdict is the word for what nothing here uses.
func (u *unused) verdict() string {
	if u.differs {
		return "refused"
	}
	return "ignored"
}

// oldName says what newer versions of Slurm call a directive.
func oldName(now string) string {
	if now == "nothing" {
		return " (newer versions of Slurm do not have it)"
	}
	return " (newer versions of Slurm call it " + now + ")"
}

// namesOf lists the names of groups as Slurm writes them.
func namesOf(groups ...[]unused) (out []string) {
	for _, g := range slices.Concat(groups...) {
		out = append(out, strings.Fields(g.names)...)
	}
	return out
}

// unknownDirective says of a directive that no version of Slurm has it, and which one may be meant.
func unknownDirective(name, where string, known []string) string {
	if strings.HasSuffix(where, " line") {
		where = "a " + where
	}
	text := "Slurm 20.11 to 26.05 has no such setting in " + where
	if near := nearestName(name, known); near != "" {
		text += "; did you mean " + near + "?"
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

// Directive is a directive of slurm.conf for people. Now says what newer versions of Slurm have
// instead, and is empty where they have it still.
type Directive struct{ Name, Becomes, Now string }

// Directives lists what is known of slurm.conf: every directive with what becomes of it.
func Directives() (out []Directive) {
	for name, where := range placed {
		out = append(out, Directive{Name: name, Becomes: where})
	}
	for name, rule := range ruleWords {
		out = append(out, Directive{Name: name, Becomes: rule})
	}
	for _, g := range unusedConf {
		for name := range strings.FieldsSeq(g.names) {
			d := Directive{Name: name, Becomes: g.verdict() + ": " + g.why}
			if now := oldNames[strings.ToLower(name)]; now != name {
				d.Now = now
			}
			out = append(out, d)
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
		{"NodeName", "the machines: `--cluster`, `--config`", ofNodes},
		{"NodeSet", "the nodes of partitions: `--cluster`, `--config`", ofSets},
		{"DownNodes", "ignored: the state of a node changes; the server asks for it", ofDown},
		{"FrontendName", "", ofFront},
		{"gres.conf", "types of GPUs: `--cluster`, `--config`; counts are checked", ofGres},
		{"topology.conf", "the topology: `--cluster`", ofSwitches},
	} {
		for _, g := range l.of {
			text := l.used
			if g.why != "" {
				text = g.verdict() + ": " + g.why
			}
			out = append(out, LineSetting{l.line, strings.Join(strings.Fields(g.names), ", "), text})
		}
	}
	for _, n := range partitionNames() {
		key := strings.ToLower(n)
		text := "refused: " + partitionWords[key]
		if kept := partitionKept[n]; kept != "" {
			text = kept
		} else if harmless := harmlessWords[key]; harmless != "" {
			text = "ignored: " + harmless
		} else if same := partitionDefaults[key]; same != "" {
			text = "kept if " + same + "; else " + text
		}
		out = append(out, LineSetting{"PartitionName", n, text})
	}
	return out
}

// partitionKept are the settings of partitions that have a place.
var partitionKept = map[string]string{
	"MaxTime": "`max_time`", "PriorityTier": "`tier`", "PriorityJobFactor": "`priority`", "Priority": "`tier` and `priority`", "QOS": "`qos`", "AllowAccounts": "`allow_accounts`",
	"DenyAccounts": "`deny_accounts`", "AllowQos": "`allow_qos`", "DenyQos": "`deny_qos`", "MaxNodes": "`max_nodes`", "MinNodes": "`min_nodes`", "GraceTime": "`grace`", "PreemptMode": "`preempt_mode`",
	"TRESBillingWeights": "`billing`", "Nodes": "`--config`: nodes of the partition in cox.yaml; `--cluster`", "Default": "`--config`: default of the partition in cox.yaml", "DefaultTime": "`--config`: default_time of the partition in cox.yaml",
	"OverSubscribe": "NO, FORCE: `preempt_mode`, `time_slice`; YES is refused", "Shared": "an old name of OverSubscribe",
}
