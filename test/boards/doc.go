// Package boards checks what the repository offers for Prometheus and Grafana: every query of
// deploy/grafana and deploy/prometheus names only metrics and labels that the servers export, every
// alert has a section in its runbook, and Debian's Prometheus scrapes a server and fires an alert.
//
// It also makes the boards' JSON files of deploy/grafana/boards.yaml. It does not run Grafana.
package boards
