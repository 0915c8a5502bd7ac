// Package writer sends rows. Writer.Write takes the PlainBuffer bytes of one batch and returns one outcome for each
// row. Rows that cannot be repeated safely first get a mark or a timestamp, and are looked up before they are sent
// again. A request refused for its content is halved until the bad row is alone. A row is written only if the service
// says so, or no cell of it is left (Expiry). The writer does not wait or decide when to retry.
package writer
