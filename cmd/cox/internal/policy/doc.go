// Package policy has the commands for the site's rules and what accounts have under
// them: apply, policy, import, reserve, shares and quota.
//
// The server judges a document of rules; package policy at the root has its form and
// the importers of Slurm and Kueue.
package policy
