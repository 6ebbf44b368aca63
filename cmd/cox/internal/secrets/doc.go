// Package secrets has the commands for secrets: secret set, list, remove.
package secrets
