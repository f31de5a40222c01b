// mysql2 against the fixed answers of `cargo run -p avocet-server --example fixed_answers`.
// Usage: node protocol.mjs PORT

import assert from 'node:assert/strict';
import mysql from 'mysql2/promise';

const port = Number(process.argv[2]);
const connect = (options = {}) => mysql.createConnection({ host: '127.0.0.1', port, user: 'root', ...options });
const user = async (options) => {
  const connection = await connect(options);
  const [[row]] = await connection.query('SELECT USER');
  await connection.end();
  return row.user;
};

assert.equal(await user({}), 'root@localhost');
assert.equal(await user({ user: 'native', password: 'secret' }), 'native@%');
assert.equal(await user({ user: 'sha2', password: 'secret' }), 'sha2@%');
assert.equal(await user({ user: 'sha2', password: 'secret', ssl: { rejectUnauthorized: false } }), 'sha2@%');
await assert.rejects(user({ user: 'sha2', password: 'wrong' }), { errno: 1045 });
console.log('ok  sign-in');

const connection = await connect({ supportBigNumbers: true, bigNumberStrings: true, dateStrings: true });
const expected = ['-8', '200', '-300', '70000', '-70000', '-9223372036854775808', '18446744073709551615', '1.5',
  '0.1', '-12.05', 'grün', '\u0000\ufffd\'', '2024-02-29', '2023-11-14 22:13:20.123456', '-25:01:01', '2024', null];
const shown = (row) => Object.values(row).map((value) => (value === null ? null : String(value)));
const [[text]] = await connection.query('SELECT TYPES');
assert.deepEqual(shown(text), expected);
const [[binary]] = await connection.execute('SELECT TYPES');
assert.deepEqual(shown(binary), expected);
console.log('ok  types in both protocols');

const echo = async (value) => (await connection.execute('ECHO ?', [value]))[0][0].echo;
assert.equal(await echo('abc'), 'Str("abc")');
assert.equal(await echo(null), 'Null');
assert.equal(await echo(1.5), 'Double(1.5)');
console.log('ok  parameters');

await assert.rejects(connection.query('NONSENSE'), { errno: 1064, sqlState: '42000' });
const [rows] = await connection.query('SELECT NUMBERS 50000');
assert.equal(rows.length, 50000);
await connection.changeUser({ user: 'native', password: 'secret' });
const [[changed]] = await connection.query('SELECT USER');
assert.equal(changed.user, 'native@%');
await connection.end();
console.log('ok  errors, many rows, change of user');
