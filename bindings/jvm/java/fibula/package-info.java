/**
 * Lookups in tables that {@code fibula build} wrote.
 *
 * <p>{@link fibula.Table} is an open table. {@link fibula.Functions} are the functions of SQL that {@code fibula.spark}
 * and {@code fibula.flink} have in common. {@code docs/jvm.md} is the page for users.
 */
package fibula;
