//go:build planted_late_report

package planted

const LateReport = true
