package limit

import "strings"

// family is how Slurm's words name a thing (its enum job_state_reason; model/reason/testdata/squeue-reasons.txt).
type family uint8

const (
	ofCPU family = iota
	ofMemory
	ofNode
	ofGRES
	ofLicense
	ofBilling
	unknown
)

// familyOf sorts the name of a countable thing.
func familyOf(name string) family {
	kind, _, typed := strings.Cut(name, ":")
	switch {
	case name == "cpu":
		return ofCPU
	case name == "memory":
		return ofMemory
	case name == "node":
		return ofNode
	case name == "billing":
		return ofBilling
	case kind == "gpu" || typed:
		return ofGRES
	case strings.HasPrefix(name, license):
		return ofLicense
	}
	return unknown
}

// words has Slurm's word for each limit of a countable thing, by family. The spelling
// is not regular.
var words = [...]map[bool][unknown + 1]string{ // by what, then whether a QOS has it
	group: {
		false: {"AssocGrpCpuLimit", "AssocGrpMemLimit", "AssocGrpNodeLimit", "AssocGrpGRES", "AssocGrpLicense", "AssocGrpBilling", "AssocGrpUnknown"},
		true:  {"QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit", "QOSGrpGRES", "QOSGrpLicense", "QOSGrpBilling", "QOSGrpUnknown"},
	},
	groupMinutes: {
		false: {"AssocGrpCPUMinutesLimit", "AssocGrpMemMinutes", "AssocGrpNodeMinutes", "AssocGrpGRESMinutes", "AssocGrpLicenseMinutes", "AssocGrpBillingMinutes", "AssocGrpUnknownMinutes"},
		true:  {"QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes", "QOSGrpNodeMinutes", "QOSGrpGRESMinutes", "QOSGrpLicenseMinutes", "QOSGrpBillingMinutes", "QOSGrpUnknownMinutes"},
	},
	groupRunMinutes: {
		false: {"AssocGrpCPURunMinutesLimit", "AssocGrpMemRunMinutes", "AssocGrpNodeRunMinutes", "AssocGrpGRESRunMinutes", "AssocGrpLicenseRunMinutes", "AssocGrpBillingRunMinutes", "AssocGrpUnknownRunMinutes"},
		true:  {"QOSGrpCPURunMinutesLimit", "QOSGrpMemoryRunMinutes", "QOSGrpNodeRunMinutes", "QOSGrpGRESRunMinutes", "QOSGrpLicenseRunMinutes", "QOSGrpBillingRunMinutes", "QOSGrpUnknownRunMinutes"},
	},
	perJob: {
		false: {"AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob", "AssocMaxNodePerJobLimit", "AssocMaxGRESPerJob", "AssocMaxLicensePerJob", "AssocMaxBillingPerJob", "AssocMaxUnknownPerJob"},
		true:  {"QOSMaxCpuPerJobLimit", "QOSMaxMemoryPerJob", "QOSMaxNodePerJobLimit", "QOSMaxGRESPerJob", "QOSMaxLicensePerJob", "QOSMaxBillingPerJob", "QOSMaxUnknownPerJob"},
	},
	perNode: {
		false: {"AssocMaxCpuPerNode", "AssocMaxMemPerNode", "AssocMaxUnknownPerNode", "AssocMaxGRESPerNode", "AssocMaxUnknownPerNode", "AssocMaxBillingPerNode", "AssocMaxUnknownPerNode"},
		true:  {"QOSMaxCpuPerNode", "QOSMaxMemoryPerNode", "QOSMaxUnknownPerNode", "QOSMaxGRESPerNode", "QOSMaxUnknownPerNode", "QOSMaxBillingPerNode", "QOSMaxUnknownPerNode"},
	},
	perJobMinutes: {
		false: {"AssocMaxCpuMinutesPerJobLimit", "AssocMaxMemMinutesPerJob", "AssocMaxNodeMinutesPerJob", "AssocMaxGRESMinutesPerJob", "AssocMaxLicenseMinutesPerJob", "AssocMaxBillingMinutesPerJob", "AssocMaxUnknownMinutesPerJob"},
		true:  {"QOSMaxCpuMinutesPerJobLimit", "QOSMaxMemoryMinutesPerJob", "QOSMaxNodeMinutesPerJob", "QOSMaxGRESMinutesPerJob", "QOSMaxLicenseMinutesPerJob", "QOSMaxBillingMinutesPerJob", "QOSMaxUnknownMinutesPerJob"},
	},
	perUser: {
		true: {"QOSMaxCpuPerUserLimit", "QOSMaxMemoryPerUser", "QOSMaxNodePerUserLimit", "QOSMaxGRESPerUser", "QOSMaxLicensePerUser", "QOSMaxBillingPerUser", "QOSMaxUnknownPerUser"},
	},
	perAccount: {
		true: {"MaxCpuPerAccount", "MaxMemoryPerAccount", "MaxNodePerAccount", "MaxGRESPerAccount", "MaxLicensePerAccount", "MaxBillingPerAccount", "MaxUnknownPerAccount"},
	},
	userRunMinutes: {
		true: {"MaxCpuRunMinsPerUser", "MaxMemoryRunMinsPerUser", "MaxNodeRunMinsPerUser", "MaxGRESRunMinsPerUser", "MaxLicenseRunMinsPerUser", "MaxBillingRunMinsPerUser", "MaxUnknownRunMinsPerUser"},
	},
	accountRunMinutes: {
		true: {"MaxCpuRunMinsPerAccount", "MaxMemoryRunMinsPerAccount", "MaxNodeRunMinsPerAccount", "MaxGRESRunMinsPerAccount", "MaxLicenseRunMinsPerAccount", "MaxBillingRunMinsPerAccount", "MaxUnknownRunMinsPerAccount"},
	},
	least: {
		true: {"QOSMinCpuNotSatisfied", "QOSMinMemory", "QOSMinNode", "QOSMinGRES", "QOSMinLicense", "QOSMinBilling", "QOSMinUnknown"},
	},
}

// plainWords are those of limits that count no thing.
var plainWords = map[string][2]string{ // association's, QOS's
	"jobs":              {"AssocGrpJobsLimit", "QOSGrpJobsLimit"},
	"wall":              {"AssocMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit"},
	"group wall":        {"AssocGrpWallLimit", "QOSGrpWallLimit"},
	"user jobs":         {"AssocMaxJobsLimit", "QOSMaxJobsPerUserLimit"},
	"account jobs":      {"", "MaxJobsPerAccount"},
	"submitted":         {"AssocGrpSubmitJobsLimit", "QOSGrpSubmitJobsLimit"},
	"user submitted":    {"AssocMaxSubmitJobLimit", "QOSMaxSubmitJobPerUserLimit"},
	"account submitted": {"", "MaxSubmitJobsPerAccount"},
}
