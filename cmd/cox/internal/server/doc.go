// Package server has the commands that run, inspect and save a server: up, down,
// config, backup, restore, snapshot, replay, info, ping, token and audit.
//
// up assembles nothing itself: it reads flags and configuration and calls
// server/daemon. up, backup and restore need Linux.
package server
