// Package services has the commands for services: service list, show, scale, rollout, stop.
package services
