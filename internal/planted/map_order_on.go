//go:build planted_map_order

package planted

const MapOrder = true
