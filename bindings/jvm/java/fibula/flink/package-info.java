/** Functions of Flink's SQL over tables of {@code fibula build}, for {@code CREATE FUNCTION}. */
package fibula.flink;
